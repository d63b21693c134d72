import { EventEmitter, once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, type Writable } from 'node:stream'
import { allFeatures } from '../../src/apiserver/features/index.ts'
import { ApiServer, type Feature, type Serving, serverOptions } from '../../src/apiserver/index.ts'
import { createLogger } from '../../src/cli/logger.ts'
import { parseOptions } from '../../src/cli/options/index.ts'
import { kubernetesVersion } from '../../src/cli/serve/run.ts'
import { serverProcess } from '../../src/cli/server-process.ts'
import { type Clock, type LogLevel, type SealedValues, systemClock } from '../../src/core/index.ts'
import { parseKubeconfig } from '../../src/kubeconfig/index.ts'
import { privateKeyPem } from '../../src/pki/index.ts'
import { type Credential, HttpsCaller } from './https-caller.ts'

/** The machine's clock, which a test can make jump. */
export class JumpingClock implements Clock {
  #offsetMs = 0

  now(): number {
    return systemClock.now() + this.#offsetMs
  }

  monotonic(): number {
    return systemClock.monotonic()
  }

  jump(ms: number): void {
    this.#offsetMs += ms
  }
}

/** How an API server of a test is started. */
export interface InProcessOptions {
  /** As on the command line of `sallyport serve`. */
  readonly flags?: readonly string[]
  /** A directory of the test's own; without one the server's is made and removed again. */
  readonly dataDirectory?: string
  readonly clock?: Clock
  /** From which level on to log; `trace` unless given. */
  readonly logLevel?: LogLevel
  /** Parts that live in the server; none unless given. */
  readonly features?: readonly Feature[]
  /** Offers HTTP/2 although the runtime may drop malformed headers: for tests of that code path. */
  readonly http2?: boolean
  /** Runs as if it were this user. */
  readonly userId?: number
  /** Where the server's standard output goes; nowhere unless given. */
  readonly stdout?: Writable
}

/** An API server in this process, on real sockets of 127.0.0.1. */
export class InProcessServer {
  readonly dataDirectory: string
  /** The keys that it keeps for itself. */
  readonly sealed: SealedValues
  readonly #options: InProcessOptions
  readonly #server: ApiServer
  readonly #lines: string[]
  readonly #logged: EventEmitter
  readonly #callers: HttpsCaller[] = []
  #admin: HttpsCaller | undefined

  constructor(
    options: InProcessOptions,
    parts: {
      readonly dataDirectory: string
      readonly server: ApiServer
      readonly sealed: SealedValues
      readonly lines: string[]
      readonly logged: EventEmitter
    },
  ) {
    this.#options = options
    this.dataDirectory = parts.dataDirectory
    this.#server = parts.server
    this.sealed = parts.sealed
    this.#lines = parts.lines
    this.#logged = parts.logged
  }

  get serving(): Serving {
    return this.#server.serving
  }

  get port(): number {
    return this.serving.port
  }

  /** Everything that was logged. */
  get log(): string {
    return this.#lines.join('')
  }

  /** The administrator by the kubeconfig that the server has written. */
  async admin(): Promise<HttpsCaller> {
    this.#admin ??= this.as(await adminCredential(this.serving.adminKubeconfig))
    return this.#admin
  }

  as(credential: Credential): HttpsCaller {
    const caller = new HttpsCaller(
      { port: this.port, ca: this.serving.pki.clusterCa.bundlePem },
      credential,
    )
    this.#callers.push(caller)
    return caller
  }

  /** A new client certificate of the cluster. */
  async issue(
    commonName: string,
    organizations: readonly string[] = [],
  ): Promise<Credential & { readonly serial: string }> {
    const made = await this.serving.pki.issueClient({ commonName, organizations })
    const { serialNumber: serial } = made.certificate
    return { cert: made.certPem, key: privateKeyPem(made.key).reveal(), serial }
  }

  /** Resolves when a line with this text has been logged. */
  async logged(text: string, from = 0): Promise<string> {
    for (;;) {
      const line = this.#lines.slice(from).find((each) => each.includes(text))
      if (line !== undefined) return line
      await once(this.#logged, 'line')
    }
  }

  /** How many lines have been logged so far. */
  get logLength(): number {
    return this.#lines.length
  }

  /** Ends in good order: streams are told, requests under way are answered. */
  async drain(): Promise<void> {
    await this.#server.stop(AbortSignal.timeout(10_000))
  }

  /** Stops at once, whatever is under way, and keeps the data directory. */
  async halt(): Promise<void> {
    for (const caller of this.#callers.splice(0)) caller.close()
    this.#admin = undefined
    await this.#server.stop(AbortSignal.abort())
  }

  async close(): Promise<void> {
    await this.halt()
    if (this.#options.dataDirectory !== undefined) return
    await rm(this.dataDirectory, { recursive: true, force: true })
  }
}

/** Starts an API server on a free port, as `sallyport serve` would. */
export async function startInProcess(options: InProcessOptions = {}): Promise<InProcessServer> {
  const { flags = [], clock = systemClock } = options
  const dataDirectory =
    options.dataDirectory ?? (await mkdtemp(join(tmpdir(), 'sallyport-in-process-')))
  const lines: string[] = []
  const logged = new EventEmitter().setMaxListeners(0)
  const log = createLogger({
    level: options.logLevel ?? 'trace',
    format: 'json',
    clock,
    write(line) {
      lines.push(line)
      logged.emit('line')
    },
  })
  const parsed = await parseOptions(
    { command: 'sallyport serve', summary: '', options: serverOptions, examples: [] },
    {
      argv: ['--bind-address', '127.0.0.1', '--secure-port', '0', ...flags],
      env: {},
      readFile: (path) => readFile(path, 'utf8'),
    },
  )
  let sealed: SealedValues | undefined
  const takeSealed: Feature = {
    name: 'take sealed',
    open: async (context) => {
      sealed = context.sealed
      return {}
    },
  }
  const server = new ApiServer({
    options: parsed.values,
    dataDirectory,
    version: await kubernetesVersion(),
    clock,
    log,
    features: [...(options.features ?? allFeatures), takeSealed],
    ...(options.http2 !== undefined && { http2: options.http2 }),
    process: {
      ...serverProcess(),
      stdout: options.stdout ?? new PassThrough().resume(),
      ...(options.userId !== undefined && { userId: options.userId }),
    },
  })
  await server.start().catch(async (error: unknown) => {
    await server.stop(AbortSignal.abort())
    throw error
  })
  if (!sealed) throw new Error('the server has started without its features')
  return new InProcessServer(options, { dataDirectory, server, sealed, lines, logged })
}

async function adminCredential(path: string): Promise<Credential> {
  const config = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const [user] = config.users.values()
  const cert = user?.clientCertificateData
  const key = user?.clientKeyData?.reveal()
  if (cert === undefined || key === undefined) throw new Error(`${path} has no certificate`)
  return { cert, key }
}
