import type { ClusterView } from '../core/index.ts'
import type { StoredToken } from '../discovery/index.ts'

/** The lines that somebody is given to join a cluster with a token. */
export interface InvitationLines {
  readonly sallyport: string
  /** Absent if kubeadm cannot join with this token. */
  readonly kubeadm?: string
}

/** Reads where the cluster is and whom to trust, and puts it into lines; undefined if the token cannot do both duties. */
export async function invitationOf(
  view: ClusterView,
  { token, usages, boundNodeName }: StoredToken,
  signal: AbortSignal,
): Promise<InvitationLines | undefined> {
  if (!usages.has('signing') || !usages.has('authentication')) return undefined
  const { joinLine, kubeadmJoinLine, readClusterInfo, rootPins } = await import(
    '../discovery/index.ts'
  )
  const { location } = await readClusterInfo(view, signal)
  const invitation = {
    server: location.addresses[0],
    pins: rootPins(location.rootsPem),
    token,
    ...(location.systemRoots && { systemRoots: true }),
    ...(boundNodeName !== undefined && { nodeName: boundNodeName }),
  }
  const kubeadm = kubeadmJoinLine(invitation)
  return { sallyport: joinLine(invitation), ...(kubeadm !== undefined && { kubeadm }) }
}
