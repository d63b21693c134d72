import { type ClusterView, isRecord, wellKnownKinds } from '../../core/index.ts'
import { listUserRecords } from './user-records.ts'

/** Where the server notes who still shows a certificate of a CA that is being replaced. */
export const oldCertificatesKey = {
  namespace: 'kube-system',
  name: 'sallyport-old-certificates',
} as const

/** A client certificate that stops working when its CA is dropped. */
export interface OldCertificate {
  /** Upper-case hexadecimal. */
  readonly serial: string
  readonly user: string
  /** RFC 3339. */
  readonly expires: string
  /** RFC 3339; absent if it was not used since the new CA signs. */
  readonly lastSeen?: string
}

/** Client certificates of a CA that have not expired: those in use, and those that were issued to persons before. */
export async function listOldCertificates(
  view: ClusterView,
  old: { readonly subject: string; readonly signedUntil: number; readonly now: number },
  signal: AbortSignal,
): Promise<OldCertificate[]> {
  const noted = await view.get(wellKnownKinds.configMap, oldCertificatesKey, signal)
  const data = isRecord(noted?.['data']) ? noted['data'] : {}
  const seen = Object.entries(data).flatMap(([serial, text]) => noteOf(serial, text, old.subject))
  const inUse = new Set(seen.map(({ serial }) => serial))
  const issued = (await listUserRecords(view, signal))
    .filter((record) => Date.parse(record.issued) < old.signedUntil && !inUse.has(record.serial))
    .map(({ serial, name: user, expires }) => ({ serial, user, expires }))
  return [...seen, ...issued].filter(({ expires }) => Date.parse(expires) > old.now)
}

function noteOf(serial: string, text: unknown, issuer: string): OldCertificate[] {
  const note = parsed(text)
  if (!isRecord(note) || note['issuer'] !== issuer) return []
  const { user, expires, lastSeen } = note
  if (typeof user !== 'string' || typeof expires !== 'string' || typeof lastSeen !== 'string')
    return []
  return [{ serial, user, expires, lastSeen }]
}

function parsed(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}
