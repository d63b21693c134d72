import { createHash, type KeyObject } from 'node:crypto'
import type { KubeClient } from '../../client/index.ts'
import {
  apiVersionOf,
  type Clock,
  hasReason,
  isRecord,
  type KubeObject,
  longestTimerMs,
  wellKnownKinds,
  withinTime,
} from '../../core/index.ts'
import { privateKeyPem, publicKeyOf } from '../../pki/trust/index.ts'
import type { DiscoveryParts } from '../client/discovery-order.ts'
import { joinFailure } from './api-failure.ts'
import { awaitCertificate } from './await-certificate.ts'
import { certificateRequest } from './certificate-request.ts'
import { checkCertificate } from './check-certificate.ts'
import { JoinFailed } from './join-failed.ts'
import type { JoinedIdentity, JoinOrder, JoinParts, JoinProgress } from './join-order.ts'
import type { RequestState } from './request-state.ts'
import {
  type JoinIdentity,
  type WantedCertificate,
  wantedCertificate,
} from './wanted-certificate.ts'

const { certificateSigningRequest: requestKind } = wellKnownKinds

const usualApprovalTimeoutMs = 60 * 60_000

interface AskingParts {
  readonly client: KubeClient
  readonly key: KeyObject
  readonly clock: Clock
  readonly parts: JoinParts
}

/** One request for a certificate, from placing it to its answer. */
export class Asking {
  readonly #order: JoinOrder
  readonly #parts: AskingParts
  readonly #wanted: WantedCertificate
  readonly #name: string

  constructor(order: JoinOrder, parts: AskingParts) {
    this.#order = order
    this.#parts = parts
    this.#wanted = wantedCertificate(order.as)
    this.#name = requestName(order.as, parts.key)
  }

  /** Places the request, or finds the one that an earlier run has placed. */
  async ask(signal: AbortSignal): Promise<void> {
    const { client } = this.#parts
    try {
      await this.#refuseTakeover(signal)
      await client.create(requestKind, this.#request(), {}, signal)
      this.#tell({ step: 'requested', request: this.#name, resumed: false })
    } catch (error) {
      if (!hasReason(error, 'AlreadyExists'))
        throw joinFailure(error, `a certificate for ${this.#wanted.subject.commonName}`, signal)
      this.#tell({ step: 'requested', request: this.#name, resumed: true })
    }
  }

  async await(
    pause: Required<DiscoveryParts>['pause'],
    signal: AbortSignal,
  ): Promise<JoinedIdentity> {
    const { client, key, clock } = this.#parts
    const limitMs = this.#order.approvalTimeoutMs ?? usualApprovalTimeoutMs
    const patienceMs = Math.min(Math.max(limitMs, 1), longestTimerMs)
    const waiting = { client, name: this.#name, pause, onState: this.#onState() }
    const pem = await withinTime(patienceMs, signal, (either) =>
      awaitCertificate(waiting, either).catch((error: unknown) => {
        throw either.aborted && !signal.aborted ? this.#pending() : error
      }),
    )
    const wanted = this.#wanted
    const certificate = checkCertificate(pem, { key, wanted, nowMs: clock.now() })
    return {
      username: wanted.subject.commonName,
      certificatePem: pem,
      keyPem: privateKeyPem(key),
      expiresAt: Date.parse(certificate.validTo),
      request: this.#name,
    }
  }

  /** Whoever takes the name of a node that is at work would get its secrets. */
  async #refuseTakeover(signal: AbortSignal): Promise<void> {
    const { as, credential } = this.#order
    // A certificate renews itself, and its node is Ready.
    if (as.kind !== 'node' || credential.clientCertificateData !== undefined) return
    const node = await this.#parts.client
      .get(wellKnownKinds.node, { name: as.name }, signal)
      .catch((error: unknown) => {
        if (hasReason(error, 'Forbidden', 'NotFound')) return undefined
        throw error
      })
    if (!node || !isReady(node)) return
    throw new JoinFailed(
      'node-name-taken',
      `there is a node ${as.name} already, and it is at work`,
      {
        hint: 'choose another --node-name, or remove the other node first: `kubectl delete node`',
      },
    )
  }

  #request(): KubeObject {
    const { subject, signerName } = this.#wanted
    const { lifetimeMs } = this.#order
    return {
      apiVersion: apiVersionOf(requestKind),
      kind: requestKind.kind,
      metadata: { name: this.#name },
      spec: {
        request: Buffer.from(certificateRequest(this.#parts.key, subject)).toString('base64'),
        signerName,
        usages: ['digital signature', 'client auth'],
        ...(lifetimeMs !== undefined && { expirationSeconds: Math.round(lifetimeMs / 1000) }),
      },
    }
  }

  #onState(): (state: RequestState) => void {
    let told: boolean | undefined
    return (state) => {
      if ('certificatePem' in state || state.approved === told) return
      told = state.approved
      this.#tell({ step: 'pending', request: this.#name, approved: state.approved })
    }
  }

  #tell(progress: JoinProgress): void {
    this.#parts.parts.onJoinProgress?.(progress)
  }

  #pending(): JoinFailed {
    return new JoinFailed('approval-pending', `nobody has answered request ${this.#name} yet`, {
      hint: `an administrator approves it with \`kubectl certificate approve ${this.#name}\`; then run the same again, it goes on where it was`,
    })
  }
}

/** The same key asks under the same name, so that a second run finds the request of the first. */
function requestName(as: JoinIdentity, key: KeyObject): string {
  const digest = createHash('sha256')
    .update(publicKeyOf(key).export({ type: 'spki', format: 'der' }))
    .update(`${as.kind} ${as.name}`)
    .digest('hex')
  return `${as.kind}-csr-${digest.slice(0, 32)}`
}

function isReady(node: KubeObject): boolean {
  const status = isRecord(node['status']) ? node['status'] : {}
  const conditions = Array.isArray(status['conditions']) ? status['conditions'] : []
  return conditions
    .filter(isRecord)
    .some((condition) => condition['type'] === 'Ready' && condition['status'] === 'True')
}
