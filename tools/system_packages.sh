#!/bin/sh
# The Debian packages that the tests need besides Python: a C++ compiler (torch.compile), a GL library
# (MuJoCo's frames), a browser (reports), and two shells (completion).
# Installs what is missing if it may; otherwise it names the packages, and the tests that need them are skipped.
set -eu
[ "$(uname)" = Linux ] || exit 0

can_draw() { # libEGL alone is not enough: it needs a driver, Mesa's or NVIDIA's
    libraries=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p)
    case "$libraries" in
        *libOSMesa.so*|*libEGL_nvidia.so*) return 0 ;;
        *libEGL_mesa.so*) ls /usr/lib/*/dri/swrast_dri.so >/dev/null 2>&1 ;;
        *) return 1 ;;
    esac
}

missing=""
command -v g++ >/dev/null || missing="$missing g++"
can_draw || missing="$missing libosmesa6"
command -v chromium >/dev/null || missing="$missing chromium"
for shell in zsh fish; do command -v $shell >/dev/null || missing="$missing $shell"; done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "make packages: installs$missing with apt-get, once (a minute or two) ..."
    # shellcheck disable=SC2086  # one word a package
    if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    then exit 0; fi
fi
echo "peer-rl: some tests need$missing and are skipped; to run them: sudo apt-get install$missing" >&2
