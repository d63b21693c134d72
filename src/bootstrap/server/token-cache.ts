import { createInformer, type Informer } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  type KubeObject,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import {
  isExpired,
  isTokenSecret,
  readTokenSecret,
  type StoredToken,
  secretNameOf,
  tokenNamespace,
  tokenSecretType,
} from '../tokens/stored-token.ts'

/** What the cache of tokens works with. */
export interface TokenCacheOptions {
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** All valid tokens of the cluster. */
export class TokenCache {
  readonly #clock: Clock
  readonly #tokens: Informer<StoredToken>

  private constructor(clock: Clock, tokens: Informer<StoredToken>) {
    this.#clock = clock
    this.#tokens = tokens
  }

  /** Resolves when all tokens are known; keeps them up to date until the signal aborts. */
  static async open({ view, clock, log, signal }: TokenCacheOptions): Promise<TokenCache> {
    const tokens = createInformer({
      view,
      kind: wellKnownKinds.secret,
      query: { namespace: tokenNamespace, fieldSelector: `type=${tokenSecretType}` },
      project: (object) => storedToken(object, log),
      log,
      clock,
      signal,
    })
    await tokens.synced
    return new TokenCache(clock, tokens)
  }

  /** The token of this name, if it exists and has not expired. */
  find(id: string): StoredToken | undefined {
    const found = this.#tokens.get({ namespace: tokenNamespace, name: secretNameOf(id) })
    return found && !isExpired(found, this.#clock.now()) ? found : undefined
  }
}

function storedToken(object: KubeObject, log: Logger): StoredToken | undefined {
  if (!isTokenSecret(object) || object.metadata.deletionTimestamp !== undefined) return undefined
  const { stored, problems } = readTokenSecret(object)
  if (!stored) log.warn({ secret: object.metadata.name, problems }, 'bootstrap token is invalid')
  return stored
}
