import { CommandFailed } from '../../core/index.ts'
import { serviceAccountPath } from '../pod/pod-object.ts'

/**
 * Runs in a mount namespace of its own: shows the directory $1 at the fixed path, then becomes the command.
 * Where the path is not there, the deepest directory above it that is gets a copy of itself in memory at $2,
 * made of mounts of everything in it, to which the path is added: nothing on the machine is changed.
 * What was needed for the mounts is given up before the command runs, and it dies with its parent $3.
 */
const enter = `set -eu
source=$1
stage=$2
parent=$3
shift 3
target=${serviceAccountPath}
have=$target
while [ ! -d "$have" ]; do have=\${have%/*}; [ -n "$have" ] || { echo 'there is no /var' >&2; exit 1; }; done
if [ "$have" != "$target" ]; then
  mount -t tmpfs -o mode=0755,size=256k tmpfs "$stage"
  for entry in "$have"/* "$have"/.[!.]* "$have"/..?*; do
    copy=$stage/\${entry##*/}
    if [ -L "$entry" ]; then
      cp -P "$entry" "$copy"
    elif [ -d "$entry" ]; then
      mkdir "$copy"
      mount --rbind "$entry" "$copy"
    elif [ -e "$entry" ]; then
      : >"$copy"
      mount --bind "$entry" "$copy"
    fi
  done
  mkdir -p "$stage\${target#"$have"}"
  mount --rbind "$stage" "$have"
fi
mount --bind "$source" "$target"
mount -o remount,bind,ro,nosuid,nodev,noexec "$target"
exec setpriv --pdeathsig KILL --ambient-caps -all --inh-caps -all -- \\
  sh -c '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"' sh "$parent" "$@"
`

/** Which directories a namespace is made of, and for whom. */
export interface NamespacePlan {
  readonly isRoot: boolean
  /** What is shown at the fixed path. */
  readonly source: string
  /** An empty directory, to mount things on. */
  readonly stage: string
  /** The process whose end is the command's end. */
  readonly parent: number
}

/** The words that run a command with its service account at the fixed path; root needs no user namespace for it. */
export function inMountNamespace(plan: NamespacePlan, command: readonly string[]): string[] {
  const user = plan.isRoot ? [] : ['--user', '--map-current-user', '--keep-caps']
  const { source, stage, parent } = plan
  const entering = ['sh', '-c', enter, 'sallyport', source, stage, String(parent)]
  return ['unshare', ...user, '--mount', '--', ...entering, ...command]
}

const without =
  '--no-in-cluster goes without: clients that read KUBECONFIG, as kubectl does, find the token all the same'

/** Why there is no mount namespace here, and what to do. */
export function noMountNamespace(platform: string, why?: string): CommandFailed {
  if (platform !== 'linux')
    return new CommandFailed(
      'NO_MOUNT_NAMESPACE',
      `in-cluster clients read ${serviceAccountPath}, which a process can have of its own on Linux only`,
      { hint: without },
    )
  return new CommandFailed(
    'NO_MOUNT_NAMESPACE',
    `cannot show the process its service account at ${serviceAccountPath}: ${why}`,
    {
      hint: `unshare, setpriv and mount of util-linux 2.36 or later and, unless you are root, user namespaces are needed (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns); ${without}`,
    },
  )
}
