import { hash, randomBytes } from 'node:crypto'
import { type Authentication, CommandFailed, type Logger, Secret } from '../core/index.ts'
import type { TokenAuthenticator } from './bearer-token.ts'
import { CsvInvalid, type CsvRecord, parseCsv } from './csv.ts'

/** Where static tokens come from. */
export interface TokenFileOptions {
  /** For messages only. */
  readonly path: string
  readonly read: () => Promise<string>
  /** Calls back whenever the file may have changed, until the function it returns is called. */
  readonly watch: (onChange: () => void) => () => void
  readonly log: Logger
}

/** A static token of the form `id.secret`, by which requests can also be signed instead of showing it. */
export interface StructuredToken {
  readonly secret: Secret
  readonly authentication: Authentication
}

/** The form of bootstrap tokens; any other token is a plain text. */
const structuredForm = /^([a-z0-9]{6})\.([a-z0-9]{16,64})$/

/** Static tokens in Kubernetes' CSV form: token, user, uid and optionally "group1,group2". */
export interface TokenFile extends TokenAuthenticator {
  /** Reads the file again; a broken one leaves what is known as it is, and says so. */
  reload(): Promise<void>
  /** The token of the form `id.secret` that has this id. */
  findStructured(id: string): StructuredToken | undefined
  /** Stops watching. */
  close(): void
}

/** Reads the token file, which must be good at the start, and follows its changes. */
export async function openTokenFile(options: TokenFileOptions): Promise<TokenFile> {
  const tokens = new StaticTokens(options)
  await tokens.load()
  tokens.follow()
  return tokens
}

interface KnownTokens {
  readonly byDigest: Map<string, Authentication>
  readonly byId: Map<string, StructuredToken>
}

/**
 * Tokens are found by a keyed digest with a key of this process: how long the search takes says
 * nothing about a token. The memory holds only secrets that sign.
 */
class StaticTokens implements TokenFile {
  readonly name = 'token-file'
  readonly #options: TokenFileOptions
  readonly #key = randomBytes(32).toString('hex')
  #known: KnownTokens = { byDigest: new Map(), byId: new Map() }
  #loading: Promise<void> = Promise.resolve()
  #unwatch = () => {}

  constructor(options: TokenFileOptions) {
    this.#options = options
  }

  authenticateToken(token: string): Authentication | undefined {
    return this.#known.byDigest.get(this.#digest(token))
  }

  findStructured(id: string): StructuredToken | undefined {
    return this.#known.byId.get(id)
  }

  async load(): Promise<void> {
    const { path, read } = this.#options
    try {
      this.#known = this.#parse(await read())
    } catch (cause) {
      if (!(cause instanceof CsvInvalid)) throw cause
      throw new CommandFailed('TOKEN_FILE_INVALID', `token file ${path}, ${cause.message}`, {
        hint: 'each line is: token,user,uid or token,user,uid,"group1,group2"',
        cause,
      })
    }
  }

  follow(): void {
    this.#unwatch = this.#options.watch(() => void this.reload())
  }

  reload(): Promise<void> {
    const { path, log } = this.#options
    this.#loading = this.#loading.then(async () => {
      try {
        await this.load()
        log.info({ path, tokens: this.#known.byDigest.size }, 'token file reloaded')
      } catch (err) {
        log.error({ err, path }, 'token file cannot be read, keeping the tokens known before')
      }
    })
    return this.#loading
  }

  close(): void {
    this.#unwatch()
  }

  #parse(text: string): KnownTokens {
    const known: KnownTokens = { byDigest: new Map(), byId: new Map() }
    for (const record of parseCsv(text)) {
      const authentication = identityIn(record)
      const token = record.fields[0] ?? ''
      if (token === '') this.#warn(record, 'token file has an empty token, which is ignored')
      else this.#add(known, record, { token, authentication })
    }
    return known
  }

  #add(
    { byDigest, byId }: KnownTokens,
    record: CsvRecord,
    { token, authentication }: { readonly token: string; readonly authentication: Authentication },
  ): void {
    const digest = this.#digest(token)
    if (byDigest.has(digest)) this.#warn(record, 'token file has a token twice, the last counts')
    if (record.fields.length > 4) this.#warn(record, 'token file has more than four columns')
    byDigest.set(digest, authentication)
    const [, id, secret] = structuredForm.exec(token) ?? []
    if (id === undefined || secret === undefined) return
    // Whoever signs names the id only, so it must stand for one secret.
    if (byId.has(id) && byId.get(id)?.secret.reveal() !== secret)
      throw new CsvInvalid(record.line, `another token has the same id, ${id}`)
    byId.set(id, { secret: new Secret(secret), authentication })
  }

  #warn({ line }: CsvRecord, message: string): void {
    this.#options.log.warn({ path: this.#options.path, line }, message)
  }

  #digest(token: string): string {
    return hash('sha256', this.#key + token, 'base64')
  }
}

function identityIn({ line, fields }: CsvRecord): Authentication {
  const [, username = '', uid = '', groups = ''] = fields
  if (fields.length < 3) {
    const need = 'at least 3 columns are needed (token, user name, user uid)'
    throw new CsvInvalid(line, `${need}, found ${fields.length}`)
  }
  if (username === '') throw new CsvInvalid(line, 'the user name is empty')
  return {
    user: {
      username,
      ...(uid && { uid }),
      groups: groups.split(',').filter((group) => group !== ''),
    },
    method: 'token-file',
  }
}
