import type { Socket } from 'node:net'
import type { RememberingVerifier, VerifiedClientCertificate } from '../../authn/index.ts'
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
import { maxRecordedCertificates } from '../limits.ts'
import { oldCertificatesKey } from '../users/index.ts'

/** What certificates are recorded with. */
export interface OldCertificateDeps {
  readonly pki: Pki
  /** Reports each use of a client certificate. */
  readonly certificates: RememberingVerifier
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

const writeEveryMs = 2_000

/** Records which clients still use a certificate of a CA that is being replaced, so that it is not removed too early. */
export class OldCertificates {
  readonly #deps: OldCertificateDeps
  /** What is recorded of a certificate; undefined for those of the new CA. */
  readonly #known = new WeakMap<VerifiedClientCertificate, { readonly facts: object | undefined }>()
  readonly #seen = new Map<string, { readonly facts: object; readonly lastSeen: number }>()
  #isRotating = false
  #isNew = false

  constructor(deps: OldCertificateDeps) {
    this.#deps = deps
    this.#readCa()
    deps.pki.onNewClusterCa(() => this.#readCa())
  }

  /** Writes what is recorded to the cluster, again and again. */
  start(): void {
    const { log, signal } = this.#deps
    const options = { name: 'certificates of the old CA', everyMs: writeEveryMs, log, signal }
    checkPeriodically(() => this.#write(), options)
  }

  readonly #record = (certificate: VerifiedClientCertificate, socket: Socket): void => {
    const known = this.#known.get(certificate) ?? { facts: this.#factsOf(certificate, socket) }
    this.#known.set(certificate, known)
    const { facts } = known
    const { serial } = certificate
    if (!facts || (!this.#seen.has(serial) && this.#seen.size >= maxRecordedCertificates)) return
    this.#seen.set(serial, { facts, lastSeen: this.#deps.clock.now() })
    this.#isNew = true
  }

  #factsOf(certificate: VerifiedClientCertificate, socket: Socket): object | undefined {
    const [leaf] = peerCertificates(socket)
    if (!leaf || leaf.verify(this.#deps.pki.clusterCa.certificate.publicKey)) return undefined
    const { commonName: user, organizations: groups, notAfter } = certificate
    return { user, groups, issuer: leaf.issuer, expires: kubeTime(notAfter) }
  }

  #readCa(): void {
    const { pki, certificates } = this.#deps
    this.#isRotating = parseCertificates(pki.clusterCa.bundlePem).length > 1
    certificates.onUse = this.#isRotating ? this.#record : undefined
    if (this.#isRotating) return
    this.#seen.clear()
    this.#isNew = true
  }

  async #write(): Promise<void> {
    if (!this.#isNew) return
    this.#isNew = false
    const { view, signal } = this.#deps
    if (!this.#isRotating) return forget(view, signal)
    const recorded = Object.fromEntries(
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
        data: { ...(isRecord(present['data']) && present['data']), ...recorded },
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
