#!/usr/bin/env bash
# Third-party libraries of the web UI, at pinned versions from npm, below page/vendor/ with their licences.
#
#     vendor.sh          fetches them and writes page/vendor/ and vendor.sha256
#     vendor.sh --check  compares page/vendor/ with vendor.sha256; needs no network
set -euo pipefail
cd "$(dirname "$0")"

packages=(preact@11.2.0 htm@3.1.1 marked@18.2.1 dompurify@3.4.18 diff@9.0.0)

if [ "${1:-}" = --check ]; then
    sha256sum --quiet --check vendor.sha256
    # A file that no hash names is a file that nobody checked.
    diff <(cut -c67- vendor.sha256) <(find page/vendor -type f | LC_ALL=C sort)
    echo "the studio's libraries are as they were fetched"
    exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work" "${packages[@]}"
rm -rf page/vendor

# A browser resolves no package names without an inline import map, which the content security policy forbids; and a map
# of a source that is not served would be asked for in vain.
take() {
    mkdir -p "page/vendor/$(dirname "$2")"
    sed -e 's|from"preact"|from"./preact.js"|' -e '/^\/\/# sourceMappingURL=/d' "$work/node_modules/$1" >"page/vendor/$2"
}

take preact/dist/preact.mjs preact/preact.js
take preact/hooks/dist/hooks.mjs preact/hooks.js
take preact/LICENSE preact/LICENSE
take htm/dist/htm.module.js htm/htm.js
take htm/LICENSE htm/LICENSE
take marked/lib/marked.esm.js marked/marked.js
take marked/LICENSE marked/LICENSE
take dompurify/dist/purify.es.mjs dompurify/purify.js
take dompurify/LICENSE dompurify/LICENSE
take diff/libesm/diff/base.js diff/diff/base.js
take diff/libesm/diff/line.js diff/diff/line.js
take diff/libesm/util/params.js diff/util/params.js
take diff/LICENSE diff/LICENSE

find page/vendor -type f | LC_ALL=C sort | xargs sha256sum >vendor.sha256
