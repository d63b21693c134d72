import { realpath } from 'node:fs/promises'
import {
  checkDiscoveryOrder,
  type Discovery,
  type DiscoveryMethod,
  type DiscoveryOrder,
  type DiscoveryParts,
  discoverCluster,
  parseJoinToken,
  systemRoots,
} from '../../bootstrap/discovery/index.ts'
import {
  type JoinIdentity,
  type JoinOrder,
  joinCluster,
  joinedKubeconfig,
  usernameOf,
} from '../../bootstrap/join/index.ts'
import { kubeTime, type Logger, type Secret, systemClock } from '../../core/index.ts'
import { type Cluster, renderKubeconfig, writeKubeconfig } from '../../kubeconfig/index.ts'
import { asWrongUsage } from '../command.ts'
import { type Io, standardInput } from '../io.ts'
import { createLogger } from '../logger.ts'
import { PendingKey, type PresentIdentity, renewedKubeconfig, writeIdentityFiles } from './files.ts'
import type { JoinOptions } from './options.ts'
import { type JoinPlan, type Method, readToken, type Source } from './plan.ts'
import { JoinReporter } from './reporter.ts'

/** What a join has left behind. */
export interface JoinOutcome {
  readonly did: 'found' | 'joined' | 'renewed' | 'present'
  readonly cluster: Cluster
  /** The file, or `-`. */
  readonly kubeconfig: string
  /** Absent if nobody had to look for the cluster. */
  readonly discovery?: Discovery
  /** Absent with --discovery-only. */
  readonly identity?: {
    readonly username: string
    readonly expires: string
    readonly request?: string
  }
  /** The directory of the files for other programs. */
  readonly certDir?: string
}

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

/** Gets the certificate and leaves it in files; the key is kept from before the request to the end. */
export async function obtain(
  order: Pick<JoinOrder, 'cluster' | 'credential' | 'as'>,
  place: {
    readonly out: string
    /** What is there already. */
    readonly present: PresentIdentity | undefined
    readonly run: JoinRun
  },
): Promise<JoinOutcome> {
  const { out, present, run } = place
  const { options } = run
  const pending = new PendingKey(out === '-' ? undefined : out)
  if (options.force) await pending.remove()
  const keyPem = await pending.read()
  const identity = await joinCluster(
    {
      ...order,
      timeoutMs: options.timeout,
      approvalTimeoutMs: options.approvalTimeout,
      ...(keyPem && { keyPem }),
      ...(options.lifetime !== undefined && { lifetimeMs: options.lifetime }),
    },
    {
      ...run.parts,
      keepKey: (key) => pending.keep(key),
      onJoinProgress: (progress) => run.reporter.join(progress),
    },
  )
  const certDir = certDirOf(options, out)
  if (certDir !== undefined)
    await writeIdentityFiles(certDir, await caOf(order.cluster, run), identity)
  const config = present
    ? renewedKubeconfig(present, order.cluster, identity)
    : joinedKubeconfig(order.cluster, identity)
  if (out === '-') run.io.stdout(await renderKubeconfig(config))
  // A link to what is there stays one: the file behind it is what others read.
  else await writeKubeconfig(present ? await realpath(out) : out, config)
  await pending.remove()
  return {
    did: 'joined',
    cluster: order.cluster,
    kubeconfig: out,
    identity: {
      username: identity.username,
      expires: kubeTime(identity.expiresAt),
      request: identity.request,
    },
    ...(certDir !== undefined && { certDir }),
  }
}

/** Nothing to do, except that files for other programs may be missing. */
export async function asItIs(
  present: PresentIdentity,
  as: JoinIdentity,
  { out, run }: { readonly out: string; readonly run: JoinRun },
): Promise<JoinOutcome> {
  const { cluster, user, certificate } = present
  const certDir = certDirOf(run.options, out)
  const { clientCertificateData: certificatePem, clientKeyData: keyPem } = user
  if (certDir !== undefined && certificatePem !== undefined && keyPem)
    await writeIdentityFiles(certDir, await caOf(cluster, run), { certificatePem, keyPem })
  return {
    did: 'present',
    cluster,
    kubeconfig: out,
    identity: { username: usernameOf(as), expires: kubeTime(Date.parse(certificate.validTo)) },
    ...(certDir !== undefined && { certDir }),
  }
}

/** An agent takes files, so it gets some beside the kubeconfig. */
const certDirOf = ({ certDir, tunnelAgent }: JoinOptions, out: string): string | undefined =>
  certDir ?? (tunnelAgent ? `${out.replace(/\.kubeconfig$/, '')}.pki` : undefined)

const caOf = async ({ certificateAuthorityData: pem }: Cluster, run: JoinRun): Promise<string> =>
  pem ?? (await systemRoots(run.io.env)).join('\n')
