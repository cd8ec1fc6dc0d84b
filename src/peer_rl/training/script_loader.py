"""Finds the function of a user's script that ``peer-rl compare`` calls: ``path/script.py:name`` or ``module:name``."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from peer_rl.errors import ConfigError, nearest

_OPTIONAL = ("regularizer", "control", "steps")
"""What a function is given if it has a parameter of that name, in addition to the seed and beta."""
_FORM = "name a function as SCRIPT.py:NAME or MODULE:NAME"


class ScriptLoadedError(BaseException):
    """Ends the import of a script that itself calls ``compare``: the functions above that line are defined."""


class _State:
    loading = False


def stop_if_loading() -> None:
    """Called by ``compare`` first of all: a worker that imports the script must not start a comparison of its own."""
    if _State.loading:
        raise ScriptLoadedError


@dataclass(frozen=True)
class Script:
    """A function of a user's script, and how it is called."""

    spec: str
    """Absolute ``path/script.py:name``, or ``module:name``."""
    function: Callable[..., Any]
    logs: bool
    """Whether it trains and logs by itself; otherwise it returns a Stable-Baselines3 model."""
    accepts: frozenset[str]
    """Which of regularizer, control and steps it takes."""
    digest: str

    @property
    def task(self) -> str:
        """The name under which its runs are kept: ``script:name``."""
        module, _, name = self.spec.rpartition(":")
        stem = Path(module).stem if module.endswith(".py") else module
        word = "".join(letter if letter.isalnum() or letter in "_." else "_" for letter in stem)
        return f"{word if word[:1].isalpha() else f'_{word}'}:{name}"

    @property
    def name(self) -> str:
        """The function's name."""
        return self.spec.rpartition(":")[2]

    def call(self, seed: int, beta: float, *log: Callable[..., None], **options: Any) -> Any:
        """Call the function with what it accepts."""
        given = {name: value for name, value in options.items() if name in self.accepts}
        return self.function(seed, beta, *log, **given)


def load_script(spec: str) -> Script:
    """Import the script and look at the function's parameters."""
    module_name, colon, name = spec.rpartition(":")
    if not colon or not name.isidentifier():
        raise ConfigError(f"{spec!r} names no function; {_FORM}, for example my_script.py:make")
    is_file = module_name.endswith(".py")
    path = Path(module_name).expanduser().resolve() if is_file else None
    if path and not path.is_file():
        raise ConfigError(f"there is no file {module_name}; {_FORM}")
    module = _import(module_name, path)
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise ConfigError(f"{module_name} has no function {name!r}{nearest(name, functions)}")
    source = path or Path(getattr(module, "__file__", None) or "")
    return _describe(f"{path or module_name}:{name}", function, _digest(source))


def spec_of_function(function: Callable[..., Any]) -> str:
    """``path/script.py:name`` of a function object, for processes that have to find it again."""
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", "")
    if not name.isidentifier():
        raise ConfigError(
            f"compare runs every seed in a process of its own, which cannot find {name or function!r}: "
            "give it a function at the top level of a .py file"
        )
    if "." in module:
        return f"{module}:{name}"
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or not Path(file).is_file():
        raise ConfigError(
            f"compare runs every seed in a process of its own, which cannot find {name}: write it to a .py file"
        )
    return f"{Path(file).resolve()}:{name}"


def _describe(spec: str, function: Callable[..., Any], digest: str) -> Script:
    name = spec.rpartition(":")[2]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{spec} cannot be called as {name}(seed, beta): {error}") from error
    logs = "log" in signature.parameters
    accepts = frozenset(_OPTIONAL) & signature.parameters.keys()
    try:
        signature.bind(0, 0.0, *[print] * logs, **dict.fromkeys(accepts))
    except TypeError as error:
        raise ConfigError(
            f"{name}{signature} must be callable as {name}(seed, beta), returning a Stable-Baselines3 model, or as "
            f"{name}(seed, beta, log), training by itself: {error}"
        ) from error
    return Script(spec, function, logs, accepts, digest)


def _import(name: str, path: Path | None) -> ModuleType:
    try:
        with _loading(path):
            return _import_file(path) if path else importlib.import_module(name)
    except SystemExit as error:
        raise ConfigError(
            f"importing {name} ended the program; put what it runs under if __name__ == '__main__'"
        ) from (error)
    except ConfigError:
        raise
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and name.split(".")[0] == error.name
        hint = (
            f"; name the file, {name.replace('.', '/')}.py, or put its folder on PYTHONPATH"
            if missing and not path
            else ""
        )
        raise ConfigError(f"importing {name} raised {type(error).__name__}: {error}{hint}") from error


def _import_file(path: Path) -> ModuleType:
    loaded = sys.modules.get(path.stem)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if loaded is None:  # so that classes of the script can be pickled, for SubprocVecEnv say
        sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except ScriptLoadedError:
        pass
    except BaseException:
        if loaded is None:
            sys.modules.pop(path.stem, None)
        raise
    return module


@contextmanager
def _loading(path: Path | None) -> Iterator[None]:
    """As if the script had been started: its folder comes first on the path, and it sees none of peer-rl's options."""
    argv, before = sys.argv, _State.loading
    if path:
        sys.argv = [str(path)]
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
    _State.loading = True
    try:
        yield
    finally:
        sys.argv, _State.loading = argv, before


def _digest(path: Path) -> str:
    """Comments and layout do not count: a run stays valid while its code does."""
    try:
        return sha256(ast.dump(ast.parse(path.read_bytes())).encode()).hexdigest()[:16]
    except (OSError, SyntaxError, ValueError):
        return ""
