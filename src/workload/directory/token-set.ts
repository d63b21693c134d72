import type { KubeClient } from '../../client/index.ts'
import { type Clock, CommandFailed, hasReason, isRecord, Secret } from '../../core/index.ts'

/** A token in a file of the directory, and for whom it is. */
export interface TokenFile {
  readonly file: string
  /** Absent for the API server itself. */
  readonly audience?: string
}

/** The Pod that tokens are bound to. */
interface TokenSubject {
  readonly namespace: string
  readonly serviceAccount: string
  readonly pod: { readonly name: string; readonly uid: string }
}

interface HeldToken {
  readonly token: Secret
  /** Epoch milliseconds from which on a newer one is wanted. */
  readonly staleAt: number
}

const dayMs = 24 * 3_600_000

/** When a token is to be replaced: at 80 % of its life, and no later than after a day, as the kubelet does. */
export const staleAt = (issuedAt: number, expiresAt: number): number =>
  issuedAt + Math.min(0.8 * (expiresAt - issuedAt), dayMs)

/** The tokens of one workload, each replaced in time. */
export class TokenSet {
  readonly #parts: TokenSetParts
  readonly #held = new Map<string, HeldToken>()

  constructor(parts: TokenSetParts) {
    this.#parts = parts
  }

  /** When the first of them is to be replaced. */
  get staleAt(): number {
    return Math.min(...[...this.#held.values()].map((held) => held.staleAt))
  }

  /** Asks for what is missing or due; tells whether something has changed. */
  async refresh(signal: AbortSignal): Promise<boolean> {
    const { clock, files } = this.#parts
    const due = files.filter(({ file }) => (this.#held.get(file)?.staleAt ?? 0) <= clock.now())
    for (const wanted of due) this.#held.set(wanted.file, await this.#request(wanted, signal))
    return due.length > 0
  }

  /** The tokens by the files that they belong in. */
  *contents(): Iterable<readonly [string, string]> {
    for (const [file, { token }] of this.#held) yield [file, token.reveal()]
  }

  async #request({ audience }: TokenFile, signal: AbortSignal): Promise<HeldToken> {
    const { client, subject, lifetimeMs, clock } = this.#parts
    const { namespace, serviceAccount: name, pod } = subject
    const issuedAt = clock.now()
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { namespace, name },
      spec: {
        audiences: audience === undefined ? [] : [audience],
        expirationSeconds: Math.floor(lifetimeMs / 1_000),
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid },
      },
    }
    const { status } = await client
      .review('TokenRequest', request, signal)
      .catch((cause: unknown) => {
        throw hasReason(cause, 'NotFound') ? noAccount(subject, cause) : cause
      })
    return readAnswer(status, issuedAt)
  }
}

interface TokenSetParts {
  readonly client: Pick<KubeClient, 'review'>
  readonly clock: Clock
  readonly subject: TokenSubject
  readonly files: readonly TokenFile[]
  readonly lifetimeMs: number
}

function noAccount({ namespace, serviceAccount }: TokenSubject, cause: unknown): CommandFailed {
  const message = `there is no service account ${serviceAccount} in namespace ${namespace}`
  const hint = `make it with \`kubectl create serviceaccount ${serviceAccount} --namespace ${namespace}\``
  return new CommandFailed('NO_SERVICE_ACCOUNT', message, { hint, cause })
}

/** The server decides how long a token lives; it may be shorter than was asked for. */
function readAnswer(status: unknown, issuedAt: number): HeldToken {
  const { token, expirationTimestamp } = isRecord(status) ? status : {}
  const expiresAt = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : 0
  if (typeof token !== 'string' || token === '' || !(expiresAt > issuedAt))
    throw new CommandFailed('NO_TOKEN', 'the server answered a TokenRequest without a usable token')
  return { token: new Secret(token), staleAt: staleAt(issuedAt, expiresAt) }
}
