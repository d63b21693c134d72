import { type Logger, type Secret, systemClock } from '../../core/index.ts'
import {
  checkDiscoveryOrder,
  type Discovery,
  type DiscoveryMethod,
  type DiscoveryOrder,
  type DiscoveryParts,
  discoverCluster,
  parseJoinToken,
  systemRoots,
} from '../../discovery/client/index.ts'
import { asWrongUsage } from '../as-wrong-usage.ts'
import type { Io } from '../io.ts'
import { standardInput } from '../standard-input.ts'
import { createLogger } from '../stderr-logger.ts'
import type { JoinOptions } from './join-options.ts'
import type { JoinPlan, Method, Source } from './join-plan.ts'
import { JoinReporter } from './join-reporter.ts'
import { readToken } from './read-source.ts'

/** One run of `sallyport join`: what was asked for, and what it is told with. */
export class JoinRun {
  readonly options: JoinOptions
  readonly plan: JoinPlan
  readonly io: Io
  readonly reporter: JoinReporter
  readonly log: Logger
  readonly #tokens = new Map<Source, Promise<Secret>>()

  constructor(options: JoinOptions, plan: JoinPlan, io: Io) {
    this.options = options
    this.plan = plan
    this.io = io
    this.reporter = new JoinReporter(io, () => systemClock.monotonic())
    this.log = createLogger({
      level: options.logLevel,
      format: 'text',
      clock: systemClock,
      write: (line) => this.reporter.log(line),
    })
  }

  /** What discovery and joining work with. */
  get parts(): DiscoveryParts {
    return {
      signal: this.io.drain,
      clock: systemClock,
      log: this.log,
      onProgress: (progress) => this.reporter.discovery(progress),
      systemRoots: () => systemRoots(this.io.env),
    }
  }

  /** A token, read once: standard input cannot be read again. */
  token(source: Source): Promise<Secret> {
    const reading = this.#tokens.get(source) ?? readToken(source, this.io)
    this.#tokens.set(source, reading)
    return reading
  }

  /** Finds the cluster that the command line describes. */
  async discover(method: Method): Promise<Discovery> {
    const { options } = this
    const order: DiscoveryOrder = {
      method: await this.#methodOf(method),
      pins: [...options.discoveryTokenCaCertHash, ...(await this.#pinsOfBootstrapToken())],
      keepAddress: options.keepAddress,
      timeoutMs: options.timeout,
      tokenTimeoutMs: options.tokenTimeout,
    }
    asWrongUsage(() => checkDiscoveryOrder(order))
    const found = await discoverCluster(order, this.parts)
    const { advertised, asked, cluster } = found
    if (asked !== undefined && new URL(advertised).href !== new URL(asked).href)
      this.reporter.line(
        `The cluster announces itself at ${advertised}, and ${asked} was asked: ${cluster.server} is used from now on${options.keepAddress ? '' : ' (--keep-address keeps the other)'}`,
      )
    return found
  }

  /** The token that gets the certificate is read first too: it may bring pins along, or be none at all. */
  async #pinsOfBootstrapToken(): Promise<readonly string[]> {
    const { bootstrapToken } = this.plan
    if (!bootstrapToken) return []
    const token = await this.token(bootstrapToken)
    return asWrongUsage(() => parseJoinToken(token)).pins
  }

  async #methodOf(method: Method): Promise<DiscoveryMethod> {
    if (method.by === 'url') return method
    if (method.by === 'token') {
      const { addresses } = method
      const token = await this.token(method.token)
      return { by: 'token', addresses, token, requireJwt: this.options.requireJwt }
    }
    if (method.source.from === 'file') return { by: 'file', path: method.source.path }
    const stream = standardInput()
    if (stream.isTTY)
      this.reporter.line('Paste the document that locates the cluster, then Enter and Ctrl-D:')
    return { by: 'stream', stream, name: 'standard input' }
  }
}
