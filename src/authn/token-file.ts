import { hash, randomBytes } from 'node:crypto'
import {
  type Authentication,
  CommandFailed,
  type Logger,
  problemOfUserName,
  Secret,
} from '../core/index.ts'
import type { TokenAuthenticator } from './bearer-token.ts'

/** One record of a CSV text and the line on which it begins. */
export interface CsvRecord {
  readonly line: number
  readonly fields: readonly string[]
}

/** A CSV text that cannot be read; says where, never what. */
class CsvInvalid extends Error {
  readonly line: number

  constructor(line: number, what: string) {
    super(`line ${line}: ${what}`)
    this.line = line
  }
}

/** Reads RFC 4180 as Go's reader does: no comments, blank lines skipped, quotes only around whole fields. */
export function parseCsv(text: string): CsvRecord[] {
  const reader = new CsvReader(text.replaceAll(/\r(?=\n|$)/g, ''))
  const records: CsvRecord[] = []
  for (let record = reader.next(); record; record = reader.next()) records.push(record)
  return records
}

class CsvReader {
  readonly #text: string
  #at = 0
  #line = 1

  constructor(text: string) {
    this.#text = text
  }

  next(): CsvRecord | undefined {
    while (this.#text[this.#at] === '\n') this.#advance('\n')
    if (this.#at >= this.#text.length) return undefined
    const line = this.#line
    const fields = [this.#field()]
    while (this.#text[this.#at] === ',') {
      this.#at += 1
      fields.push(this.#field())
    }
    return { line, fields }
  }

  #field(): string {
    return this.#text[this.#at] === '"' ? this.#quoted() : this.#plain()
  }

  #plain(): string {
    const [value = ''] = /^[^,\n]*/.exec(this.#text.slice(this.#at)) ?? []
    if (value.includes('"')) throw new CsvInvalid(this.#line, 'a quote inside an unquoted field')
    this.#at += value.length
    return value
  }

  #quoted(): string {
    const begin = this.#line
    const match = /^"((?:[^"]|"")*)"/.exec(this.#text.slice(this.#at))
    if (!match) throw new CsvInvalid(begin, 'a quoted field has no end')
    this.#advance(match[0])
    const next = this.#text[this.#at]
    if (next !== undefined && next !== ',' && next !== '\n') {
      throw new CsvInvalid(this.#line, 'text after a quoted field')
    }
    return (match[1] ?? '').replaceAll('""', '"')
  }

  #advance(part: string): void {
    this.#at += part.length
    this.#line += part.split('\n').length - 1
  }
}

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
  const problem = problemOfUserName(username)
  if (problem !== undefined) throw new CsvInvalid(line, `the user name ${problem}`)
  return {
    user: {
      username,
      ...(uid && { uid }),
      groups: groups.split(',').filter((group) => group !== ''),
    },
    method: 'token-file',
  }
}
