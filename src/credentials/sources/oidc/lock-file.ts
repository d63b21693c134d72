import { type Clock, CommandFailed } from '../../../core/index.ts'
import { withKubeconfigLock } from '../../../kubeconfig/index.ts'
import { CredentialError } from '../../credential-error.ts'

const lockFailures: ReadonlySet<string> = new Set(['KUBECONFIG_LOCKED', 'KUBECONFIG_UNLOCKABLE'])

/** Does something while holding the lock of a kubeconfig; one that cannot be had is a failed credential. */
export async function withLockFile<T>(
  path: string,
  clock: Clock,
  signal: AbortSignal,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await withKubeconfigLock(path, clock, signal, act)
  } catch (cause) {
    if (!(cause instanceof CommandFailed) || !lockFailures.has(cause.code)) throw cause
    const hint =
      cause.code === 'KUBECONFIG_UNLOCKABLE'
        ? 'new tokens are kept in the kubeconfig, so its directory must be writable'
        : (cause.hint ?? '')
    throw new CredentialError('FILE', cause.message, { hint, cause })
  }
}
