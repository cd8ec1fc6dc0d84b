"""``peer-rl completion SHELL``: completion of commands, options and their values in bash, zsh and fish.

The shells' functions ask ``peer-rl completion words ...`` at every Tab, so that they never fall behind the commands.
Where it answers nothing they complete files.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable
from contextlib import redirect_stdout, suppress
from importlib import import_module
from unittest import mock

from peer_rl.errors import ConfigError, PeerError

_BASH = """\
_peer_rl() {
    local IFS=$'\\n'
    COMPREPLY=($(peer-rl completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _peer_rl peer-rl
"""
_ZSH = """\
#compdef peer-rl
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
_peer_rl() {
    local -a found
    found=("${(@f)$(peer-rl completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _peer_rl peer-rl
"""
_FISH = """\
function __peer_rl
    set -l typed (commandline -opc) (commandline -ct)
    set -l found (peer-rl completion words $typed[2..] 2>/dev/null)
    if set -q found[1]; printf '%s\\n' $found; else; __fish_complete_path (commandline -ct); end
end
complete -c peer-rl -f -a '(__peer_rl)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_HELP = """\
usage: peer-rl completion {bash,zsh,fish}

Print the shell's completion script. To install it, once:

  bash:  echo 'eval "$(peer-rl completion bash)"' >> ~/.bashrc
  zsh:   echo 'eval "$(peer-rl completion zsh)"' >> ~/.zshrc
  fish:  peer-rl completion fish > ~/.config/fish/completions/peer-rl.fish
"""


def main(arguments: list[str]) -> int:
    """Print a script, or what completes the last of some words."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_HELP, end="")
        return 0 if arguments else 2
    if arguments[0] == "words":
        print("\n".join(complete(arguments[1:])))
        return 0
    if arguments[0] not in SCRIPTS:
        raise ConfigError(f"no completion for {arguments[0]!r}; there are: {', '.join(SCRIPTS)}")
    print(SCRIPTS[arguments[0]], end="")
    return 0


def complete(words: list[str]) -> list[str]:
    """What may stand for the last word, which may be empty; nothing where a file or free text is expected."""
    from peer_rl.cli.main import COMMANDS

    *before, current = words or [""]
    if not before:
        return _beginning(current, [*COMMANDS, "--help", "--version"])
    command, *rest = before
    if command not in COMMANDS or command == "completion":
        return _beginning(current, SCRIPTS) if command == "completion" and not rest else []
    options = _options(command, rest)
    if rest and rest[-1] in options and options[rest[-1]] is not None:
        return _beginning(current, _values(rest[-1], options[rest[-1]] or ""))
    if current.startswith("-"):
        return _beginning(current, options)
    return _beginning(current, _positional(command)) if not rest else []


def _beginning(current: str, candidates: Iterable[str]) -> list[str]:
    return [word for word in candidates if word.startswith(current)]


def _options(command: str, rest: list[str]) -> dict[str, str | None]:
    """The options in the command's help with the words for their values; None for a switch."""
    found: dict[str, str | None] = {"--help": None}
    for names, value in re.findall(r"^\W*?(--[\w.-]+(?:, --[\w.-]+)*)(?: (\S+))?", _help(command, rest), re.MULTILINE):
        for name in names.split(", "):
            found[name] = None if ", " in names else value
    return found


def _help(command: str, rest: list[str]) -> str:
    """What the command prints with --help, in lines that nothing wraps; empty if it cannot."""
    module = import_module(f"peer_rl.cli.{'listing' if command == 'list' else command}")
    words = ["--help"]
    if command == "train":
        task = [rest[place + 1] for place, word in enumerate(rest[:-1]) if word == "--task"]
        words = [*rest[:1], *(["--task", task[-1]] if task else []), *words]
    text = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS="1000"), redirect_stdout(text), suppress(SystemExit, PeerError):
        module.main(words)
    return text.getvalue()


def _values(option: str, metavar: str) -> list[str]:
    """The values that an option's help or our tables list."""
    from peer_rl.settings.agents import AGENTS
    from peer_rl.settings.tasks import TASKS

    known = {
        "--task": [*TASKS],
        "--agents": [*AGENTS],
        "--device": ["auto", "cpu", "cuda", "mps"],
        "--regularizer": ["peer", "cosine-peer", "feature-norm", "dr3", "beer", "none"],
    }
    listed = [word for choices in re.findall(r"{([^}]*)}", metavar) for word in choices.split(",") if word != "None"]
    return known.get(option, listed)


def _positional(command: str) -> list[str]:
    """What a command's first word may be, where it is no file."""
    from peer_rl.paper import EXPERIMENTS
    from peer_rl.settings.agents import AGENTS

    known = {"train": [*AGENTS], "reproduce": [*EXPERIMENTS], "list": ["agents", "tasks", "experiments"]}
    return known.get(command, [])
