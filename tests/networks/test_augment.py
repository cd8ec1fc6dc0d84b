"""Augmentations against a plain version, row by row; what is drawn, for whom, and from which generator."""

from functools import partial

import pytest
import torch

from peer_rl.networks.augment import (
    centre_crop,
    crop,
    draw_offsets,
    random_crop,
    random_crop_and_pad,
    random_flip,
    random_intensity,
    random_rotation,
    random_shift,
    rotate,
    shift,
)

RANDOM = {
    "shift": partial(random_shift, pad=3),
    "crop": partial(random_crop, size=9),
    "crop and pad": partial(random_crop_and_pad, margin=3),
    "intensity": partial(random_intensity, scale=0.1),
    "flip": partial(random_flip, probability=0.5),
    "rotation": partial(random_rotation, degrees=20.0),
}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def frames_of(rows: int, height: int = 12, width: int = 12, *, floats: bool = False) -> torch.Tensor:
    frames = torch.randint(256, (rows, 3, height, width), generator=generator(9), dtype=torch.uint8)
    return frames / 255 if floats else frames


def plain_crop(frame: torch.Tensor, pad: int, top: int, left: int, height: int, width: int) -> torch.Tensor:
    """One row's frames, a pixel at a time; outside of them the nearest border pixel counts."""
    _, high, wide = frame.shape
    cut = frame.new_zeros(len(frame), height, width)
    for i in range(height):
        for j in range(width):
            row, column = min(max(top + i - pad, 0), high - 1), min(max(left + j - pad, 0), wide - 1)
            cut[:, i, j] = frame[:, row, column]
    return cut


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize(("height", "width"), [(12, 12), (7, 11)])
@pytest.mark.parametrize("pad", [0, 1, 4])
def test_a_shift_is_the_border_repeated_and_a_crop_back(pad, height, width, floats):
    frames, rng = frames_of(20, height, width, floats=floats), generator()
    top, left = draw_offsets(20, 2 * pad, rng), draw_offsets(20, 2 * pad, rng)
    expected = [plain_crop(frames[i], pad, int(top[i]), int(left[i]), height, width) for i in range(20)]
    assert torch.equal(shift(frames, pad, top, left), torch.stack(expected))
    assert torch.equal(random_shift(frames, pad, generator()), torch.stack(expected))


def test_a_crop_is_a_square_of_each_row():
    frames, rng = frames_of(20, 12, 10), generator()
    top, left = draw_offsets(20, 12 - 7, rng), draw_offsets(20, 10 - 7, rng)
    expected = [plain_crop(frames[i], 0, int(top[i]), int(left[i]), 7, 7) for i in range(20)]
    assert torch.equal(crop(frames, 7, top, left), torch.stack(expected))
    assert torch.equal(random_crop(frames, 7, generator()), torch.stack(expected))
    assert torch.equal(random_crop(frames_of(3), 12, generator()), frames_of(3)), "as large as the frames"


def test_curls_for_atari_crops_pads_and_crops_again():
    frames, rng = frames_of(20), generator()
    inner = random_crop(frames, 9, rng)
    top, left = draw_offsets(20, 3, rng), draw_offsets(20, 3, rng)
    expected = [plain_crop(inner[i], 3, int(top[i]), int(left[i]), 12, 12) for i in range(20)]
    assert torch.equal(random_crop_and_pad(frames, 3, generator()), torch.stack(expected))
    atari = torch.zeros(2, 4, 84, 84, dtype=torch.uint8)
    assert random_crop_and_pad(atari, 4, generator()).shape == atari.shape


def test_the_centre_is_the_centre():
    frames = frames_of(3, 100, 100)
    assert torch.equal(centre_crop(frames, 84), frames[:, :, 8:92, 8:92])
    assert torch.equal(centre_crop(frames, 100), frames)


def test_intensity_is_one_factor_a_row_and_255_is_1():
    frames, noise = frames_of(4_000), torch.randn((4_000, 1, 1, 1), generator=generator()).clamp(-2, 2)
    changed = random_intensity(frames, 0.05, generator())
    torch.testing.assert_close(changed, frames / 255 * (1 + 0.05 * noise))
    torch.testing.assert_close(random_intensity(frames / 255, 0.05, generator()), changed)
    factors = (changed.sum((1, 2, 3)) / (frames / 255).sum((1, 2, 3))).sort().values
    assert factors[0].item() == pytest.approx(0.9)
    assert factors[-1].item() == pytest.approx(1.1)
    assert factors.std().item() == pytest.approx(0.05 * 0.96, abs=0.003), "of a normal clipped at 2"


def test_the_frames_that_are_given_stay_as_they_were():
    for floats in (False, True):
        frames = frames_of(5, floats=floats)
        before = frames.clone()
        for change in RANDOM.values():
            change(frames, rng=generator())
        assert torch.equal(frames, before)


@pytest.mark.parametrize(("highest", "size", "pad"), [(8, None, 4), (16, 84, None)])
def test_every_offset_occurs_the_last_one_included_and_rows_and_columns_are_drawn_apart(highest, size, pad):
    """The frame's first channel holds its row number, the second its column number."""
    side = 100 if size else 84
    ramp = torch.arange(side, dtype=torch.uint8)
    frame = torch.stack([ramp[:, None].expand(side, side), ramp[None].expand(side, side)])
    frames = frame.expand(4_000, 2, side, side)
    moved = random_crop(frames, size, generator()) if size else random_shift(frames, pad, generator())
    corner = moved[:, :, -1, -1] if size else moved[:, :, 40, 40]
    found = corner.long() - corner.long().min(0).values  # (B, 2)
    assert found.unique().tolist() == list(range(highest + 1))
    share = torch.bincount(found[:, 0] * (highest + 1) + found[:, 1], minlength=(highest + 1) ** 2) / len(found)
    assert share.min() > 0
    assert share.max() < 4 / (highest + 1) ** 2


@pytest.mark.parametrize("name", RANDOM)
def test_the_generator_decides_everything_and_rows_are_drawn_apart(name):
    change, frames = RANDOM[name], frames_of(1).expand(64, 3, 12, 12)
    torch.manual_seed(1)
    first, state = change(frames, rng=generator()), torch.get_rng_state()
    torch.manual_seed(2)
    assert torch.equal(change(frames, rng=generator()), first)
    assert not torch.equal(change(frames, rng=generator(1)), first)
    torch.manual_seed(1)
    change(frames, rng=generator())
    assert torch.equal(torch.get_rng_state(), state), "nothing of the global generator's"
    assert len({row.numpy().tobytes() for row in first}) > 3, "equal rows are changed differently"


@pytest.mark.parametrize("name", RANDOM)
def test_all_channels_of_a_row_are_changed_alike(name):
    frames = frames_of(32)[:, :1].expand(32, 3, 12, 12)
    changed = RANDOM[name](frames, rng=generator())
    assert torch.equal(changed[:, 0], changed[:, 1])
    assert torch.equal(changed[:, 0], changed[:, 2])


def test_shifts_crops_and_flips_keep_uint8():
    for name in ("shift", "crop", "crop and pad", "flip"):
        assert RANDOM[name](frames_of(2), rng=generator()).dtype == torch.uint8


def test_a_flip_is_one_of_four_all_alike():
    frames = frames_of(1).expand(2_000, 3, 12, 12)
    flipped = random_flip(frames, 0.5, generator())
    kinds = [frames[0], frames[0].flip(-1), frames[0].flip(-2), frames[0].flip(-1, -2)]
    shares = [(flipped == kind).flatten(1).all(1).float().mean().item() for kind in kinds]
    assert shares == pytest.approx([0.25] * 4, abs=0.03)


def test_a_rotation_turns_about_the_centre():
    """By a right angle it is torch.rot90; a small one leaves the middle pixel where it is, and black comes in."""
    frames = frames_of(2, 11, 11)
    for angle, turns in ((torch.pi / 2, 1), (-torch.pi / 2, -1), (torch.pi, 2), (0.0, 0)):
        turned = rotate(frames, torch.full((2,), angle))
        torch.testing.assert_close(turned, torch.rot90(frames, turns, (-2, -1)) / 255, atol=1e-3, rtol=0)
    white = torch.full((500, 1, 11, 15), 255, dtype=torch.uint8)
    white[:, :, 5, 7] = 0
    turned = random_rotation(white, 5.0, generator())
    assert (turned[:, 0, 5, 7] < 1e-3).all()
    assert (turned[:, 0, 0, 0] < 1).float().mean() > 0.9
    assert (turned[:, 0, 3, 7] > 0.99).all()


def test_a_rotation_of_an_oblong_frame_keeps_lengths():
    """A dot right of the centre lands as far above it."""
    frames = torch.zeros(1, 1, 11, 31, dtype=torch.uint8)
    frames[0, 0, 5, 19] = 255
    turned = rotate(frames, torch.tensor([torch.pi / 2]))[0, 0]
    assert turned[1, 15].item() == pytest.approx(1.0, abs=1e-3)


def test_angles_are_uniform_within_the_bound():
    """Measured on a dot 40 pixels right of the centre: its height over it is 40 sin(angle)."""
    frames = torch.zeros(600, 1, 101, 101)
    frames[:, 0, 50, 90] = 1.0
    turned = random_rotation(frames, 30.0, generator())[:, 0]  # (B, H, W)
    rows = (turned.sum(2) * torch.arange(101)).sum(1) / turned.sum((1, 2))
    degrees = torch.rad2deg(torch.asin(((50 - rows) / 40).clamp(-1, 1))).sort().values
    assert degrees[0].item() == pytest.approx(-30, abs=1.5)
    assert degrees[-1].item() == pytest.approx(30, abs=1.5)
    assert degrees.abs().mean().item() == pytest.approx(15, abs=1)
