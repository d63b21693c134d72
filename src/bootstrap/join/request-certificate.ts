import { createHash, type KeyObject } from 'node:crypto'
import type { KubeClient } from '../../client/index.ts'
import {
  apiVersionOf,
  type Clock,
  hasReason,
  isRecord,
  type KubeObject,
  longestTimerMs,
  type Secret,
  wellKnownKinds,
  withinTime,
} from '../../core/index.ts'
import type { KubeconfigUser } from '../../kubeconfig/index.ts'
import { privateKeyPem, publicKeyOf } from '../../pki/trust/index.ts'
import { parseJoinToken } from '../discovery/addresses.ts'
import { defaultApprovalTimeoutMs } from '../discovery/limits.ts'
import type { DiscoveryParts } from '../discovery/options.ts'
import { tokenText } from '../tokens/bootstrap-token.ts'
import { certificateRequest } from './certificate-request.ts'
import {
  isConnectionFailure,
  JoinFailed,
  joinFailure,
  type RequestState,
  stateOfRequest,
} from './errors.ts'
import {
  checkCertificate,
  type JoinedIdentity,
  type JoinIdentity,
  type JoinOrder,
  type JoinParts,
  type JoinProgress,
  type WantedCertificate,
  wantedCertificate,
} from './requested-certificate.ts'

const { certificateSigningRequest: requestKind } = wellKnownKinds

/** What waiting takes. */
interface Waiting {
  readonly client: KubeClient
  readonly name: string
  readonly onState: (state: RequestState) => void
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Between two looks, where the request cannot be watched. */
const lookAgainMs = 2_000

/** Waits until a request is answered with a certificate; lost connections are taken up again. */
async function awaitCertificate(waiting: Waiting, signal: AbortSignal): Promise<string> {
  for (;;) {
    try {
      const found = await look(waiting, signal)
      if ('certificatePem' in found.state) return found.state.certificatePem
      const issued = await watch(waiting, found.from, signal)
      if (issued !== undefined) return issued
    } catch (error) {
      const failure = joinFailure(error, `a look at request ${waiting.name}`, signal)
      if (!(failure instanceof JoinFailed) || !failure.mayPass) throw failure
    }
    await waiting.pause(lookAgainMs, signal)
  }
}

async function look(
  { client, name, onState }: Waiting,
  signal: AbortSignal,
): Promise<{ readonly state: RequestState; readonly from: string }> {
  const found = await client.get(requestKind, { name }, signal)
  if (!found) throw gone(name)
  const state = stateOfRequest(found)
  onState(state)
  return { state, from: found.metadata.resourceVersion ?? '' }
}

/** The certificate if it came while watching; undefined if the watch ended or is not allowed. */
async function watch(
  waiting: Waiting,
  from: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { client, name, onState } = waiting
  const query = { fieldSelector: `metadata.name=${name}`, from }
  try {
    for await (const { type, object } of client.watch(requestKind, query, signal)) {
      if (type === 'DELETED') throw gone(name)
      if (type === 'BOOKMARK' || !isRequest(object, name)) continue
      const state = stateOfRequest(object)
      onState(state)
      if ('certificatePem' in state) return state.certificatePem
    }
  } catch (error) {
    if (!isConnectionFailure(error) && !hasReason(error, 'Forbidden', 'Expired')) throw error
  }
  return undefined
}

const isRequest = (object: KubeObject, name: string): boolean => object.metadata.name === name

const gone = (name: string): JoinFailed =>
  new JoinFailed('request-gone', `request ${name} was deleted before it was answered`, {
    hint: 'clusters clean up requests after a while: run the same again',
  })

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
    const limitMs = this.#order.approvalTimeoutMs ?? defaultApprovalTimeoutMs
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
        hint: `choose another --node-name; to replace that machine, \`kubectl delete node ${as.name}\` and join with a token from \`sallyport token create --replace ${as.name}\``,
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

/** A token as the credential that asks for a certificate; for servers only that have proved who they are, also by the pins it may have. */
export const bootstrapCredential = (token: Secret | string): KubeconfigUser => ({
  token: tokenText(parseJoinToken(token).token),
})
