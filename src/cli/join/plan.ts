import { readFile, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { ReadStream } from 'node:tty'
import type { JoinIdentity } from '../../bootstrap/join/index.ts'
import { CommandFailed, Secret, systemErrorCode, WrongUsage } from '../../core/index.ts'
import { type Io, standardInput } from '../io.ts'
import { environmentOf } from '../options/values.ts'
import { type JoinOptions, joinOptions } from './options.ts'

/** Where a token or a document is read from. */
export type Source =
  | { readonly from: 'argument'; readonly text: Secret }
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'stdin' }

/** How the cluster is to be found. */
export type Method =
  | { readonly by: 'token'; readonly addresses: readonly string[]; readonly token: Source }
  | { readonly by: 'document'; readonly source: Exclude<Source, { readonly from: 'argument' }> }
  | { readonly by: 'url'; readonly url: string }

/** What a command line asks for, before anything is read or sent. */
export interface JoinPlan {
  /** Absent if nothing says where the cluster is: a certificate that is there can renew itself. */
  readonly method?: Method
  /** What gets the certificate, if one is wanted; absent if none was given. */
  readonly bootstrapToken?: Source
  /** Absent with --discovery-only. */
  readonly identity?: JoinIdentity
}

/** Understands the words of `sallyport join`; throws WrongUsage for what contradicts itself. */
export function planJoin(options: JoinOptions, args: readonly string[]): JoinPlan {
  const { addresses, identity } = splitArguments(options, args)
  const token = tokenSource(options.token, options.tokenFile, 'token')
  const discoveryToken = tokenSource(
    options.discoveryToken,
    options.discoveryTokenFile,
    'discovery-token',
  )
  const bootstrapToken =
    tokenSource(options.tlsBootstrapToken, options.tlsBootstrapTokenFile, 'tls-bootstrap-token') ??
    token
  const method = chooseMethod(options, addresses, { token, discoveryToken })
  const plan = {
    ...(method && { method }),
    ...(bootstrapToken && { bootstrapToken }),
    ...(identity && { identity }),
  }
  checkPlan(plan, options)
  return plan
}

/** With --as user and --as machine the last word is the name. */
function splitArguments(
  options: JoinOptions,
  args: readonly string[],
): { readonly addresses: readonly string[]; readonly identity?: JoinIdentity } {
  if (options.discoveryOnly) return { addresses: options.as === 'node' ? args : args.slice(0, -1) }
  if (options.as !== 'user' && options.group.length > 0)
    throw new WrongUsage('--group goes with --as user only')
  if (options.as === 'node') {
    const name = options.nodeName ?? hostname().toLowerCase()
    return { addresses: args, identity: { kind: 'node', name } }
  }
  if (options.nodeName !== undefined) throw new WrongUsage('--node-name goes with --as node only')
  const { as: kind, group: groups } = options
  const name = args.at(-1)
  if (name === undefined)
    throw new WrongUsage(`--as ${kind} needs a name: sallyport join ADDRESS --as ${kind} NAME`)
  const identity = kind === 'user' ? { kind, name, groups } : { kind, name }
  return { addresses: args.slice(0, -1), identity }
}

function tokenSource(
  text: Secret | undefined,
  path: string | undefined,
  name: 'token' | 'discovery-token' | 'tls-bootstrap-token',
): Source | undefined {
  if (text && path !== undefined)
    throw new WrongUsage(
      `--${name} (or ${environmentOf(name, joinOptions[name])}) and --${name}-file say the same: give one of them`,
    )
  if (text) return text.reveal() === '-' ? { from: 'stdin' } : { from: 'argument', text }
  return path === undefined ? undefined : fileSource(path)
}

const fileSource = (path: string): Exclude<Source, { readonly from: 'argument' }> =>
  path === '-' ? { from: 'stdin' } : { from: 'file', path }

interface Tokens {
  readonly token: Source | undefined
  readonly discoveryToken: Source | undefined
}

function chooseMethod(
  options: JoinOptions,
  addresses: readonly string[],
  tokens: Tokens,
): Method | undefined {
  refuseTwoMethods(options, addresses, tokens)
  const document = documentMethod(options)
  if (document || (addresses.length === 0 && !tokens.discoveryToken)) return document
  const token = tokens.discoveryToken ?? tokens.token
  if (addresses.length === 0) throw addressMissing(options)
  if (token) return { by: 'token', addresses, token }
  throw new WrongUsage(
    'a token is missing: give --token, --token-file or SALLYPORT_TOKEN, or find the cluster by --cluster-info-file or --cluster-info-url',
  )
}

function refuseTwoMethods(
  options: JoinOptions,
  addresses: readonly string[],
  { discoveryToken }: Tokens,
): void {
  const isGiven: Readonly<Record<string, boolean>> = {
    '--cluster-info-file': options.clusterInfoFile !== undefined,
    '--cluster-info-url': options.clusterInfoUrl !== undefined,
    '--discovery-file': options.discoveryFile !== undefined,
    // An address alone is enough: it is only good for a token.
    [discoveryToken ? '--discovery-token' : 'ADDRESS']: discoveryToken
      ? true
      : addresses.length > 0,
  }
  const given = Object.keys(isGiven).filter((name) => isGiven[name])
  if (given.length < 2) return
  throw new WrongUsage(
    `${given.join(' and ')} are different ways to find a cluster: give one of them`,
  )
}

function documentMethod(options: JoinOptions): Method | undefined {
  const { clusterInfoFile, clusterInfoUrl, discoveryFile } = options
  const url = clusterInfoUrl ?? (isUrl(discoveryFile) ? discoveryFile : undefined)
  if (url !== undefined) return { by: 'url', url }
  const file = clusterInfoFile ?? discoveryFile
  return file === undefined ? undefined : { by: 'document', source: fileSource(file) }
}

const isUrl = (text: string | undefined): text is string => /^[a-z]+:\/\//i.test(text ?? '')

/** Nothing says where the cluster is. */
export function addressMissing({ as }: JoinOptions): WrongUsage {
  const name = as === 'node' ? '' : ` --as ${as} NAME`
  return new WrongUsage(
    `ADDRESS is missing: say where an API server is, for example sallyport join 10.0.0.1:6443 --token ID.SECRET${name}`,
  )
}

function checkPlan(plan: JoinPlan, options: JoinOptions): void {
  const isOther = plan.method !== undefined && plan.method.by !== 'token'
  const contradictions: readonly (readonly [boolean, string])[] = [
    [
      readsStdinTwice(plan),
      'standard input can be read for one thing only: use a file for the other',
    ],
    [
      options.renew && (options.force || options.discoveryOnly || options.out === '-'),
      '--renew is for a certificate in a file, and excludes --force, --discovery-only and --out -',
    ],
    [options.keepAddress && isOther, '--keep-address goes with ADDRESS only'],
    [options.requireJwt && isOther, '--require-jwt goes with a token that finds the cluster'],
    [
      options.tunnelAgent && plan.identity?.kind !== 'node',
      '--tunnel-agent goes with --as node only: tunnel servers let in nodes',
    ],
    [
      options.tunnelAgent && options.out === '-',
      '--tunnel-agent needs files: give --out another name than -',
    ],
  ]
  const [found] = contradictions.filter(([is]) => is)
  if (found) throw new WrongUsage(found[1])
}

function readsStdinTwice({ method, bootstrapToken }: JoinPlan): boolean {
  const sources = [
    ...(method?.by === 'token' ? [method.token] : []),
    ...(method?.by === 'document' ? [method.source] : []),
    ...(bootstrapToken ? [bootstrapToken] : []),
  ]
  return new Set(sources.filter(({ from }) => from === 'stdin')).size > 1
}

const key = { interrupt: '\u0003', end: '\u0004', backspace: '\u007F', deletes: '\b' } as const

/** Reads a line that is typed on a terminal without showing it; `ask` is called once nothing is shown any more. */
function hiddenLine(terminal: ReadStream, ask: () => void): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = ''
    // By events: a loop over the stream would close it before the terminal is as it was.
    const done = (settle: () => void): void => {
      terminal.off('data', listen).pause().setRawMode(false)
      settle()
    }
    const take = (character: string): boolean => {
      if (character === key.interrupt) {
        done(() =>
          reject(new CommandFailed('ABORTED', 'no token was typed', { hint: 'run it again' })),
        )
        return false
      }
      if (character === '\r' || character === '\n' || character === key.end) {
        done(() => resolve(line))
        return false
      }
      const isErased = character === key.backspace || character === key.deletes
      line = isErased ? line.slice(0, -1) : line + character
      return true
    }
    const listen = (typed: Buffer): void => {
      for (const character of typed.toString()) if (!take(character)) return
    }
    terminal.setRawMode(true)
    ask()
    terminal.on('data', listen).resume()
  })
}

/** More than any token has. */
const longestToken = 4096

/** Reads a token from where the command line says it is. */
export async function readToken(source: Source, io: Io): Promise<Secret> {
  if (source.from === 'argument') return source.text
  const text = source.from === 'file' ? await tokenInFile(source.path, io) : await tokenTyped(io)
  const token = text.trim()
  if (token !== '') return new Secret(token)
  throw new CommandFailed('TOKEN_MISSING', 'there is no token where it should be read from', {
    hint: 'put it there as one line: ID.SECRET',
  })
}

async function tokenInFile(path: string, io: Io): Promise<string> {
  try {
    const { mode, size } = await stat(path)
    // A file that others can read is not a good place, but a token in argv is a worse one.
    if ((mode & 0o077) !== 0) io.stderr(`warning: others may read ${path}: chmod 600 it\n`)
    if (size <= longestToken) return await readFile(path, 'utf8')
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    const why = code === 'ENOENT' ? 'there is no such file' : code
    throw new CommandFailed('TOKEN_UNREADABLE', `cannot read the token in ${path}: ${why}`, {
      hint: 'name a file that this user may read',
      cause,
    })
  }
  throw new CommandFailed('TOKEN_UNREADABLE', `${path} is too long to be a token`, {
    hint: 'the file must have the token and nothing else',
  })
}

async function tokenTyped(io: Io): Promise<string> {
  const input = standardInput()
  if (input instanceof ReadStream) {
    const line = await hiddenLine(input, () => io.stderr('Token (it is not shown): '))
    io.stderr('\n')
    return line
  }
  let text = ''
  for await (const part of input) {
    text += String(part)
    if (text.includes('\n') || text.length > longestToken) break
  }
  return text.split('\n', 1)[0] ?? ''
}
