# shellcheck shell=bash
# The table of peers and what `build`, `path` and `run-kube-apiserver` share. Sourced, never run.

peers_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
peers_cache=${SALLYPORT_PEERS:-$HOME/.cache/sallyport-peers}

# One line per peer: name, folder with its go.mod, module, package inside that module.
# The version is the one that go.mod requires; a name without its version is the binary's name.
peers_table='
kubectl-1.36                  kubernetes-1.36    k8s.io/kubernetes                    cmd/kubectl
kubectl-1.31                  kubernetes-1.31    k8s.io/kubernetes                    cmd/kubectl
kube-apiserver-1.36           kubernetes-1.36    k8s.io/kubernetes                    cmd/kube-apiserver
kubeadm-1.36                  kubernetes-1.36    k8s.io/kubernetes                    cmd/kubeadm
kube-controller-manager-1.36  kubernetes-1.36    k8s.io/kubernetes                    cmd/kube-controller-manager
etcd-3.6                      etcd-3.6           go.etcd.io/etcd/server/v3            .
konnectivity-server-0.36      konnectivity-0.36  sigs.k8s.io/apiserver-network-proxy  cmd/server
konnectivity-agent-0.36       konnectivity-0.36  sigs.k8s.io/apiserver-network-proxy  cmd/agent
chisel-1.11                   chisel-1.11        github.com/jpillora/chisel           .
kube-rbac-proxy-0.19          kube-rbac-proxy-0.19  github.com/brancz/kube-rbac-proxy      cmd/kube-rbac-proxy
oauth2-proxy-7.15             oauth2-proxy-7.15  github.com/oauth2-proxy/oauth2-proxy/v7  .
h2spec-2.2                    h2spec-2.2         github.com/summerwind/h2spec         cmd/h2spec
grpc-greeter-1.81             grpc-greeter-1.81  google.golang.org/grpc/examples      helloworld/greeter_server
informer                      ../go              sallyport/interop/go                 informer
load                          ../go              sallyport/interop/go                 load
tunnel-load                   ../go              sallyport/interop/go                 tunnel-load
client-load                   ../go              sallyport/interop/go                 client-load
workload                      ../go              sallyport/interop/go                 workload
openapi-v2                    ../go              sallyport/interop/go                 openapi-v2
'

# shellcheck disable=SC2034  # read by build
peers_default='kubectl-1.36 kubectl-1.31 kube-apiserver-1.36 etcd-3.6'

# Names that stand for several peers.
peers_group() {
  case $1 in
    interop-go) echo 'informer load tunnel-load client-load workload openapi-v2' ;;
    guard-peers) echo 'kube-rbac-proxy-0.19 oauth2-proxy-7.15' ;;
    grpc-peers) echo 'h2spec-2.2 grpc-greeter-1.81' ;;
    tunnel-peers) echo 'konnectivity-server-0.36 konnectivity-agent-0.36 chisel-1.11' ;;
    all) awk 'NF { print $1 }' <<<"$peers_table" ;;
    *) echo "$1" ;;
  esac
}

# Sets name, folder, module and package from the table; fails when the peer is not in it.
peer_find() {
  read -r name folder module package < <(awk -v name="$1" '$1 == name' <<<"$peers_table") || return 1
  # shellcheck disable=SC2034  # read by build
  folder=$peers_here/$folder package=$module/$package
  package=${package%/.}
}

# Our own programs have no version: the hash of their sources stands for it.
peer_version() {
  if [[ $(awk '$1 == "module" { print $2 }' "$folder/go.mod") == "$module" ]]; then
    (cd "$folder" && find . -type f \( -name '*.go' -o -name 'go.*' \) -print0 | LC_ALL=C sort -z |
      xargs -0 sha256sum | sha256sum | cut -c 1-12)
  else
    awk -v module="$module" '$1 == "require" { sub(/^require[ \t]+/, "") }
      $1 == module && $2 ~ /^v/ { print $2; exit }' "$folder/go.mod"
  fi
}

# The machine's own nginx, or the one that `build nginx` has unpacked.
nginx_binary() {
  command -v nginx && return
  [[ -x $peers_cache/nginx-debian/nginx ]] && echo "$peers_cache/nginx-debian/nginx"
}

peer_binary() {
  echo "$peers_cache/$name-$(peer_version)/${name%-[0-9]*}"
}
