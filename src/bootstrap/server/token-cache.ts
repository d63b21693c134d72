import { type Following, follow } from '../../client/index.ts'
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
  tokenNamespace,
  tokenSecretType,
} from '../tokens/stored-token.ts'

/** What tokens are followed with. */
export interface TokenBookParts {
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** All tokens of the cluster that count, as they are now. */
export class TokenBook {
  readonly #clock: Clock
  readonly #tokens = new Map<string, StoredToken>()

  private constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Reads the tokens and follows them from then on. */
  static async open({ view, clock, log, signal }: TokenBookParts): Promise<TokenBook> {
    const book = new TokenBook(clock)
    const query = { namespace: tokenNamespace, fieldSelector: `type=${tokenSecretType}` }
    const following: Following = follow(
      { view, kind: wellKnownKinds.secret, query, log, clock },
      { put: (object) => book.#put(object, log), remove: (object) => book.#remove(object) },
      signal,
    )
    await following.synced
    return book
  }

  /** The token of this name, if it is there and has not expired. */
  find(id: string): StoredToken | undefined {
    const found = this.#tokens.get(id)
    return found && !isExpired(found, this.#clock.now()) ? found : undefined
  }

  #put(object: KubeObject, log: Logger): void {
    this.#remove(object)
    if (!isTokenSecret(object) || object.metadata.deletionTimestamp !== undefined) return
    const { stored, problems } = readTokenSecret(object)
    if (stored) this.#tokens.set(stored.token.id, stored)
    else log.warn({ secret: object.metadata.name, problems }, 'a bootstrap token does not count')
  }

  #remove({ metadata }: KubeObject): void {
    this.#tokens.delete(metadata.name.replace(/^bootstrap-token-/, ''))
  }
}
