import type { X509Certificate } from 'node:crypto'
import type { DataDirectory } from '../../apiserver/data-directory/index.ts'
import { listOldCertificates, type OldCertificate } from '../../apiserver/users/index.ts'
import { readClusterInfo, rootPins } from '../../bootstrap/index.ts'
import { ConnectionFailed, createKubeClient, httpsTransport } from '../../client/index.ts'
import { CommandFailed, pause, systemClock } from '../../core/index.ts'
import { type CaRotation, spkiPin } from '../../pki/index.ts'
import { type ClusterAccess, openClusterAccess } from '../cluster-access.ts'

const followWithinMs = 30_000
const lookEveryMs = 100

/** The running server of a data directory; undefined if none runs. */
export async function runningCluster(
  directory: DataDirectory,
  signal: AbortSignal,
): Promise<ClusterAccess | undefined> {
  try {
    const access = await openClusterAccess(directory)
    await readClusterInfo(access.view, signal)
    return access
  } catch (error) {
    if (error instanceof ConnectionFailed || isAbsent(error)) return undefined
    throw error
  }
}

const isAbsent = (error: unknown): boolean =>
  error instanceof CommandFailed && error.code === 'NO_CLUSTER'

/** What the server is to have taken over. */
export interface RotationChange {
  readonly after: CaRotation
  /** The CA that is no longer trusted. */
  readonly dropped?: X509Certificate | undefined
}

/** Waits until the running server announces and shows what the files say; false if none runs. */
export async function untilFollowed(
  directory: DataDirectory,
  change: RotationChange,
  signal: AbortSignal,
): Promise<boolean> {
  const deadline = systemClock.monotonic() + followWithinMs
  for (;;) {
    const access = await runningCluster(directory, signal)
    if (!access) return false
    if (await isFollowed(access, change, signal)) return true
    if (systemClock.monotonic() >= deadline)
      throw new CommandFailed(
        'CA_ROTATION_NOT_FOLLOWED',
        `the files are written, but the server has not taken them over within ${followWithinMs / 1000} s`,
        { hint: 'see its log; `sallyport pki rotate-ca status` shows how far it has come' },
      )
    await pause(lookEveryMs, signal)
    signal.throwIfAborted()
  }
}

/** Only of the CAs that the stage is about: an operator may have added or removed other roots. */
async function isFollowed(
  { view, server }: ClusterAccess,
  { after: { stage, signing, next, old }, dropped }: RotationChange,
  signal: AbortSignal,
): Promise<boolean> {
  const { location } = await readClusterInfo(view, signal)
  const announced = new Set(rootPins(location.rootsPem))
  if (dropped && announced.has(spkiPin(dropped))) return false
  if (next && !announced.has(spkiPin(next))) return false
  if (stage !== 'switched' || !old) return true
  // A server that shows a certificate of somebody else has nothing to show.
  return (await isShown(server, signing, signal)) || !(await isShown(server, old, signal))
}

/** Whether the server's certificate can be verified by this CA alone. */
async function isShown(server: string, ca: X509Certificate, signal: AbortSignal): Promise<boolean> {
  const transport = httpsTransport({ server, caPem: ca.toString() })
  try {
    const client = createKubeClient({ transport })
    await client.request({ method: 'GET', path: '/version' }, signal)
    return true
  } catch (error) {
    return !(error instanceof ConnectionFailed)
  } finally {
    transport.destroy()
  }
}

/** The client certificates that stop working when the old CA is dropped. */
export async function certificatesAtRisk(
  access: ClusterAccess,
  { old, switchedAt }: CaRotation,
  signal: AbortSignal,
): Promise<OldCertificate[]> {
  if (!old) return []
  const now = systemClock.now()
  const facts = { subject: old.subject, signedUntil: switchedAt ?? now, now }
  return listOldCertificates(access.view, facts, signal)
}
