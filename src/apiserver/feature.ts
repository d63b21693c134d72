import {
  type Controller,
  type ExtraResource,
  type ExtraSubresource,
  type IssueToken,
  kindDefinitions,
  type RequestBodies,
  type ResourceHandler,
  type VirtualResource,
} from '../api/index.ts'
import type { Revocations, TokenAuthenticator, TokenFile } from '../authn/index.ts'
import {
  type Admission,
  ApiError,
  type Authorizer,
  type Backend,
  type Clock,
  type ClusterView,
  type Dialer,
  type Logger,
  type MetricsRegistry,
  type SealedValues,
} from '../core/index.ts'
import type { Pki, ServingCertificate } from '../pki/index.ts'
import { connectTcp, TargetUnreachable } from '../tunnel/index.ts'
import type { DataDirectory } from './data-directory/index.ts'
import { defaultDialTimeoutMs } from './limits.ts'
import type { ServerOptions } from './options/options.ts'
import type { PathRoute } from './routes/route.ts'
import type { VersionInfo } from './routes/routes.ts'
import { hostAndPort } from './startup/serving-names.ts'

/** What a feature is opened with. The cluster can be read; it accepts no write before all features are open. */
export interface OpenContext {
  readonly options: ServerOptions
  /** As `/version` returns it. */
  readonly version: VersionInfo
  readonly directory: DataDirectory
  readonly pki: Pki
  /** Keys that the server keeps for itself and its replicas. */
  readonly sealed: SealedValues
  readonly view: ClusterView
  readonly authorizer: Authorizer
  /** For ports that a feature opens itself; the pipeline checks those of the API. */
  readonly revocations: Pick<Revocations, 'isRevoked' | 'onRevoked'>
  readonly metrics: MetricsRegistry
  readonly clock: Clock
  readonly log: Logger
  /** Opens connections to Pods, Services and nodes, as `--egress` says. */
  readonly dialer: Dialer
  /** The serving certificate of the port. */
  readonly serving: ServingCertificate
  /** Reads and decodes the bodies of requests, within the server's limits. */
  readonly bodies: RequestBodies
  /** The tokens of `--token-auth-file`. */
  readonly tokenFile: TokenFile | undefined
  /** Aborts when the server stops. */
  readonly signal: AbortSignal
  /** Has something closed when the server stops, in reverse order. */
  readonly onClose: (name: string, close: (deadline: AbortSignal) => void | Promise<void>) => void
}

/** What a feature is started with: the port is open. */
export interface StartContext {
  readonly location: ServerLocation
}

/** Where clients reach the server. */
export interface ServerLocation {
  /** Name or address. */
  readonly host: string
  readonly port: number
  readonly url: string
}

/** Addresses on which a feature listens, by purpose. */
export type Listeners = Readonly<Record<string, string>>

/** What a feature adds to the server. */
export interface FeatureParts {
  /** Kinds of bearer tokens, examined after the token file. */
  readonly tokens?: readonly FeatureToken[]
  readonly routes?: readonly PathRoute[]
  readonly subresources?: readonly FeatureSubresource[]
  readonly resources?: readonly FeatureResource[]
  /** Serves `services/proxy`, `pods/proxy` and `nodes/proxy`. */
  readonly serviceProxy?: ServiceProxyPart
  /** Run after the plugins of `backend/admission.ts`. */
  readonly admissions?: readonly Admission[]
  readonly issuer?: TokenIssuer
  /** Exact paths that anonymous requests may use; RBAC still decides. */
  readonly anonymousPaths?: readonly string[]
  /** Dials for the features that are opened after this one. */
  readonly dialer?: Dialer
  /** Run while the server serves. */
  readonly controllers?: readonly Controller[]
  /** Called once, when the port is open and the cluster accepts writes, before the server is ready. */
  start?(context: StartContext): Promise<Listeners | void>
}

/** A kind of bearer token. */
interface FeatureToken {
  readonly authenticator: TokenAuthenticator
  /** `own`: the tokens name their audiences. `api`: they name none, and are for the API server only. */
  readonly audiences: 'own' | 'api'
}

/** Issues the tokens of service accounts. */
interface TokenIssuer {
  readonly issue: IssueToken
  /** The audiences of the API server's own tokens. */
  readonly apiAudiences: readonly string[]
}

/** A resource that a feature serves, as API discovery shows it. */
interface FeatureResource {
  readonly entry: ExtraResource
  readonly handle: ResourceHandler
}

/** A subresource with its handler, as API discovery shows it. */
export interface FeatureSubresource {
  readonly entry: ExtraSubresource
  readonly handle: ResourceHandler
}

/** Serves proxied requests. */
export interface ServiceProxyPart {
  /** Of the core group, as API discovery shows them. */
  readonly subresources: readonly ExtraSubresource[]
  readonly proxy: { readonly serve: Backend['handle']; readonly upgrade: Backend['upgrade'] }
}

/** A part of the product in the API server, opened and started in the order of one list. */
export interface Feature {
  readonly name: string
  open(context: OpenContext): Promise<FeatureParts>
}

/** What all features together add to the server. */
export interface OpenFeatures {
  readonly tokens: readonly FeatureToken[]
  readonly routes: readonly PathRoute[]
  readonly admissions: readonly Admission[]
  readonly controllers: readonly Controller[]
  readonly anonymousPaths: readonly string[]
  readonly issuer: TokenIssuer | undefined
  readonly serviceProxy: ServiceProxyPart | undefined
  /** By `group/version/resource/subresource`. */
  readonly virtual: ReadonlyMap<string, VirtualResource>
  /** All subresources and resources, for API discovery. */
  readonly subresources: readonly ExtraSubresource[]
  readonly resources: readonly ExtraResource[]
  /** Starts the features one after another. */
  start(context: StartContext): Promise<Listeners>
}

/** Opens the features one after another. */
export async function openFeatures(
  features: readonly Feature[],
  context: Omit<OpenContext, 'dialer'>,
): Promise<OpenFeatures> {
  const opened: FeatureParts[] = []
  let dialer = directDialer()
  for (const feature of features) {
    const parts = await feature.open({ ...context, dialer })
    dialer = parts.dialer ?? dialer
    opened.push(parts)
  }
  const subresources = opened.flatMap((parts) => parts.subresources ?? [])
  const resources = opened.flatMap((parts) => parts.resources ?? [])
  const serviceProxy = opened.find((parts) => parts.serviceProxy)?.serviceProxy
  return {
    tokens: opened.flatMap((parts) => parts.tokens ?? []),
    routes: opened.flatMap((parts) => parts.routes ?? []),
    admissions: opened.flatMap((parts) => parts.admissions ?? []),
    controllers: opened.flatMap((parts) => parts.controllers ?? []),
    anonymousPaths: opened.flatMap((parts) => parts.anonymousPaths ?? []),
    issuer: opened.find((parts) => parts.issuer)?.issuer,
    serviceProxy,
    virtual: new Map([
      ...subresources.map((each) => [pathOf(each.entry), virtualOf(each)] as const),
      ...resources.map(({ entry: { verbs, namespaced, ...entry }, handle }) => {
        const virtual: VirtualResource = { verbs, namespaced, handle }
        return [pathOf({ ...entry, name: '' }), virtual] as const
      }),
    ]),
    subresources: [
      ...subresources.map(({ entry }) => entry),
      ...(serviceProxy?.subresources ?? []),
    ],
    resources: resources.map(({ entry }) => entry),
    start: async (started) => {
      const listeners: Record<string, string> = {}
      for (const parts of opened) Object.assign(listeners, await parts.start?.(started))
      return listeners
    },
  }
}

/** A subresource is in the scope of its parent, which is a stored kind. */
function virtualOf({ entry, handle }: FeatureSubresource): VirtualResource {
  const parent = kindDefinitions.find(
    ({ kind }) =>
      kind.group === entry.group &&
      kind.version === entry.version &&
      kind.resource === entry.resource,
  )
  if (!parent) throw new Error(`no kind has the resource ${pathOf(entry)}`)
  return { verbs: entry.verbs, namespaced: parent.kind.namespaced, handle }
}

/** As metrics and the resource API look up resources. */
export const pathOf = ({
  group,
  version,
  resource,
  name,
}: Pick<ExtraSubresource, 'group' | 'version' | 'resource' | 'name'>): string =>
  `${group}/${version}/${resource}/${name}`

/** Dials by TCP, with a timeout. */
export function directDialer(timeoutMs = defaultDialTimeoutMs): Dialer {
  return {
    dial: async ({ host, port }, signal) => {
      try {
        return await connectTcp({ host, port }, { timeoutMs, signal, allowHalfOpen: false })
      } catch (cause) {
        signal.throwIfAborted()
        if (!(cause instanceof TargetUnreachable)) throw cause
        const message = `cannot reach ${hostAndPort(host, port)}: ${cause.message}`
        throw new ApiError('ServiceUnavailable', message, { cause })
      }
    },
  }
}
