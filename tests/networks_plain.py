"""Parts of networks written out plainly, for tests of several agents."""

import math

import torch


def plain_projection(probabilities, support, reward, discount):
    """Bellemare et al.'s algorithm 1, one atom after another."""
    atoms, gap = len(support), float(support[-1] - support[0]) / (len(support) - 1)
    wanted = torch.zeros(len(reward), atoms, dtype=torch.float64)
    for row in range(len(reward)):
        for atom in range(atoms):
            moved = float(reward[row]) + float(discount[row]) * float(support[atom])
            place = (min(max(moved, float(support[0])), float(support[-1])) - float(support[0])) / gap
            low, high = math.floor(place), min(math.ceil(place), atoms - 1)
            if low >= high:
                wanted[row, high] += float(probabilities[row, atom])
            else:
                wanted[row, low] += float(probabilities[row, atom]) * (high - place)
                wanted[row, high] += float(probabilities[row, atom]) * (place - low)
    return wanted
