import type { StoredToken, TokenEntry } from '../../bootstrap/index.ts'
import { type ClusterView, kubeTime } from '../../core/index.ts'

/** A token as programs see it, without its secret. */
export function tokenJson({ id, stored, problems }: TokenEntry, nowMs: number): object {
  if (!stored) return { id, problems: problems.map(({ field, message }) => `${field} ${message}`) }
  const { expiresAt, description, maxUses, boundNodeName, replaceNodeName } = stored
  return {
    id,
    usages: [...stored.usages].sort(),
    groups: stored.extraGroups,
    ...(expiresAt !== undefined && {
      expires: kubeTime(expiresAt),
      secondsLeft: Math.max(0, Math.floor((expiresAt - nowMs) / 1000)),
    }),
    ...(maxUses !== undefined && { maxUses, usesLeft: usesLeft(stored) }),
    ...(boundNodeName !== undefined && { nodeName: boundNodeName }),
    ...(replaceNodeName !== undefined && { replaces: replaceNodeName }),
    ...(description !== undefined && { description }),
  }
}

/** How many node certificates a token is still good for; undefined for no limit. */
function usesLeft({ maxUses, uses = 0 }: StoredToken): number | undefined {
  return maxUses === undefined ? undefined : Math.max(0, maxUses - uses)
}

/** What a person sees of a token in a row, without its secret. */
export function tokenRow({ id, stored, problems }: TokenEntry, nowMs: number): string[] {
  if (!stored) {
    const why = problems.map(({ field, message }) => `${field} ${message}`).join('; ')
    return [id, 'invalid', '-', '-', '-', '-', why]
  }
  return [
    id,
    lifeLeft(stored, nowMs),
    [...stored.usages].sort().join(',') || '-',
    String(usesLeft(stored) ?? 'unlimited'),
    stored.boundNodeName ?? 'any',
    stored.extraGroups.join(',') || '-',
    stored.description ?? '',
  ]
}

/** The headings above such rows. */
export const tokenHeadings = [
  'ID',
  'LIFE LEFT',
  'USAGES',
  'USES LEFT',
  'NODE',
  'GROUPS',
  'DESCRIPTION',
]

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const

/** How long a token is still good, in its two largest units. */
export function lifeLeft({ expiresAt }: StoredToken, nowMs: number): string {
  if (expiresAt === undefined) return 'forever'
  let rest = Math.floor((expiresAt - nowMs) / 1000)
  if (rest <= 0) return 'expired'
  const parts = units.map(([unit, seconds]) => {
    const count = Math.floor(rest / seconds)
    rest -= count * seconds
    return count > 0 ? `${count}${unit}` : ''
  })
  const first = parts.findIndex((part) => part !== '')
  return parts.slice(first, first + 2).join('')
}

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
    '../../bootstrap/index.ts'
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
