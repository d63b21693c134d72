import type { Socket } from 'node:net'
import type { VerifiedClientCertificate } from '../../authn/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  hasReason,
  isRecord,
  kubeTime,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import {
  checkPeriodically,
  type Pki,
  parseCertificates,
  peerCertificates,
} from '../../pki/index.ts'
import { oldCertificatesKey } from '../users/index.ts'

/** What sightings are noted with. */
export interface OldCertificateParts {
  readonly pki: Pki
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

const writeEveryMs = 2_000
/** Far more than anybody would look through. */
const mostNoted = 1_000

/** Notes who still shows a certificate of a CA that is being replaced, so that it is not dropped too early. */
export class OldCertificates {
  readonly #parts: OldCertificateParts
  /** What is noted of a certificate; undefined for those of the CA that signs. */
  readonly #known = new WeakMap<VerifiedClientCertificate, { readonly facts: object | undefined }>()
  readonly #seen = new Map<string, { readonly facts: object; readonly lastSeen: number }>()
  #isRotating = false
  #isNew = false

  constructor(parts: OldCertificateParts) {
    this.#parts = parts
    this.#look()
    parts.pki.onNewClusterCa(() => this.#look())
  }

  /** Begins to write down what is seen. */
  start(): void {
    const { log, signal } = this.#parts
    const options = { name: 'certificates of the old CA', everyMs: writeEveryMs, log, signal }
    checkPeriodically(() => this.#write(), options)
  }

  /** A connection was used whose certificate was verified. */
  saw(certificate: VerifiedClientCertificate, socket: Socket): void {
    if (!this.#isRotating) return
    const known = this.#known.get(certificate) ?? { facts: this.#factsOf(certificate, socket) }
    this.#known.set(certificate, known)
    const { facts } = known
    const { serial } = certificate
    if (!facts || (!this.#seen.has(serial) && this.#seen.size >= mostNoted)) return
    this.#seen.set(serial, { facts, lastSeen: this.#parts.clock.now() })
    this.#isNew = true
  }

  #factsOf(certificate: VerifiedClientCertificate, socket: Socket): object | undefined {
    const [leaf] = peerCertificates(socket)
    if (!leaf || leaf.verify(this.#parts.pki.clusterCa.certificate.publicKey)) return undefined
    const { commonName: user, organizations: groups, notAfter } = certificate
    return { user, groups, issuer: leaf.issuer, expires: kubeTime(notAfter) }
  }

  #look(): void {
    this.#isRotating = parseCertificates(this.#parts.pki.clusterCa.bundlePem).length > 1
    if (this.#isRotating) return
    this.#seen.clear()
    this.#isNew = true
  }

  async #write(): Promise<void> {
    if (!this.#isNew) return
    this.#isNew = false
    const { view, signal } = this.#parts
    if (!this.#isRotating) return forget(view, signal)
    const noted = Object.fromEntries(
      [...this.#seen].map(([serial, { facts, lastSeen }]) => [
        serial,
        JSON.stringify({ ...facts, lastSeen: kubeTime(lastSeen) }),
      ]),
    )
    const metadata = { ...oldCertificatesKey }
    await changeObject(
      { view, kind: wellKnownKinds.configMap, key: oldCertificatesKey },
      (present = { apiVersion: 'v1', kind: 'ConfigMap', metadata }) => ({
        ...present,
        data: { ...(isRecord(present['data']) && present['data']), ...noted },
      }),
      signal,
    )
  }
}

async function forget(view: ClusterView, signal: AbortSignal): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...oldCertificatesKey } }
  await view.write('delete', object, {}, signal).catch((error: unknown) => {
    if (!hasReason(error, 'NotFound')) throw error
  })
}
