# shellcheck shell=bash
# The table of verifiers and what `build` and `path` share. Sourced, never run.

verifiers_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
verifiers_cache=${SALLYPORT_PEERS:-$HOME/.cache/sallyport-peers}

# One line per program: name and folder with its sources.
verifiers_table='
go-oidc          go
go-oidc-measure  go
pyjwt            python
nimbus           java
jose             javascript
jose-measure     javascript
openid-client    javascript
openidconnect    rust
'

verifiers_names() {
  awk 'NF { print $1 }' <<<"$verifiers_table"
}

# Sets name, folder and home (where its build is kept) from the table; fails when the verifier is not in it.
verifier_find() {
  local sources
  # shellcheck disable=SC2034  # read by build and path
  read -r name folder < <(awk -v name="$1" '$1 == name' <<<"$verifiers_table") || return 1
  sources=$(cd "$verifiers_here" && find "$folder" build -type f ! -name Cargo.lock ! -path '*/target/*' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-12)
  # shellcheck disable=SC2034  # read by build and path
  home=$verifiers_cache/verifier-$folder-$sources
}
