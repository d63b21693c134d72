import { hash, randomBytes } from 'node:crypto'
import { type Authentication, CommandFailed, type Logger } from '../core/index.ts'
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

/** Static tokens in Kubernetes' CSV form: token, user, uid and optionally "group1,group2". */
export interface TokenFile extends TokenAuthenticator {
  /** Reads the file again; a broken one leaves what is known as it is, and says so. */
  reload(): Promise<void>
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

/**
 * Tokens are found by a keyed digest with a key of this process: how long the search takes says
 * nothing about a token, and the memory holds none.
 */
class StaticTokens implements TokenFile {
  readonly name = 'token-file'
  readonly #options: TokenFileOptions
  readonly #key = randomBytes(32).toString('hex')
  #known = new Map<string, Authentication>()
  #loading: Promise<void> = Promise.resolve()
  #unwatch = () => {}

  constructor(options: TokenFileOptions) {
    this.#options = options
  }

  authenticateToken(token: string): Authentication | undefined {
    return this.#known.get(this.#digest(token))
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
        log.info({ path, tokens: this.#known.size }, 'token file reloaded')
      } catch (err) {
        log.error({ err, path }, 'token file cannot be read, keeping the tokens known before')
      }
    })
    return this.#loading
  }

  close(): void {
    this.#unwatch()
  }

  #parse(text: string): Map<string, Authentication> {
    const tokens = new Map<string, Authentication>()
    for (const record of parseCsv(text)) {
      const authentication = identityIn(record)
      const token = record.fields[0] ?? ''
      const digest = this.#digest(token)
      if (token === '') this.#warn(record, 'token file has an empty token, which is ignored')
      else {
        if (tokens.has(digest)) this.#warn(record, 'token file has a token twice, the last counts')
        if (record.fields.length > 4) this.#warn(record, 'token file has more than four columns')
        tokens.set(digest, authentication)
      }
    }
    return tokens
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
