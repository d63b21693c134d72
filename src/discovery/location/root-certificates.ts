import type { X509Certificate } from 'node:crypto'
import { parseCertificates, spkiPin } from '../../pki/trust/index.ts'

/** A root as people and programs see it. */
export interface RootReport {
  /** As kubeadm writes it. */
  readonly pin: string
  readonly subject: string
  /** RFC 3339. */
  readonly validFrom: string
  readonly validTo: string
}

/** The certificates of a PEM text, none for no text. */
export const rootsIn = (pem: string | undefined): X509Certificate[] =>
  pem === undefined ? [] : parseCertificates(pem)

/** One PEM text of all roots, each once; nothing for none. */
export function pemOf(roots: readonly X509Certificate[]): string | undefined {
  const each = new Map(roots.map((root) => [root.fingerprint256, root.toString()]))
  return each.size === 0 ? undefined : [...each.values()].join('')
}

/** The pin of each root, in their order, each once: what a join line needs while the CA is replaced. */
export const rootPins = (pem: string | undefined): string[] => [
  ...new Set(rootsIn(pem).map(spkiPin)),
]

/** What there is to say of each root. */
export const rootReports = (pem: string | undefined): RootReport[] =>
  rootsIn(pem).map((root) => ({
    pin: spkiPin(root),
    subject: root.subject.replaceAll('\n', ', '),
    validFrom: new Date(root.validFrom).toISOString().replace('.000', ''),
    validTo: new Date(root.validTo).toISOString().replace('.000', ''),
  }))
