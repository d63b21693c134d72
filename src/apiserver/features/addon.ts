import {
  liveSessions,
  type ProxyLimits,
  ServiceProxy,
  sessionEntry,
  TargetCache,
} from '../../addon/service-proxy/index.ts'
import {
  type AddonSigner,
  AddonTokenCache,
  addonJwksPath,
  addonKeyRotationPath,
  createAddonTokenMinter,
  DedicatedKeySigner,
  problemOfServingKey,
  ServingKeySigner,
} from '../../addon/token/index.ts'
import { liveResourceHandler } from '../../api/index.ts'
import { addonIdentityTest, impersonation } from '../../authn/index.ts'
import { denial, rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import { apiVersionOf, type ClusterView, type Kind, wellKnown } from '../../core/index.ts'
import { type AddressTest, anyAddress, rangeTest } from '../../http/index.ts'
import type { Feature, FeatureParts, OpenContext } from '../feature.ts'
import type { ServerOptions } from '../options/options.ts'
import { type PathRoute, sendJson } from '../routes/route.ts'

const name = 'sallyport:addon-token-keys'
const { group } = rbacKinds.clusterRole

/**
 * Permits every service account, and so every guard, to read the public keys of add-on tokens at a path. Objects that
 * exist already are kept: an administrator may have changed them.
 */
async function permitKeyReaders(
  view: ClusterView,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const ensure = (kind: Kind, fields: object): Promise<unknown> => {
    const object = {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: { name },
      ...fields,
    }
    const ifAbsent = (present: object | undefined) => (present ? undefined : object)
    return changeObject({ view, kind, key: { name } }, ifAbsent, signal)
  }
  await ensure(rbacKinds.clusterRole, { rules: [{ nonResourceURLs: [path], verbs: ['get'] }] })
  await ensure(rbacKinds.clusterRoleBinding, {
    roleRef: { apiGroup: group, kind: 'ClusterRole', name },
    subjects: [{ apiGroup: group, kind: 'Group', name: wellKnown.serviceAccounts }],
  })
}

/** The proxy to Services, Pods and nodes, which identifies users to add-ons. */
export const addonFeature: Feature = { name: 'addon', open: openAddon }

async function openAddon(context: OpenContext): Promise<FeatureParts> {
  const { view, dialer, authorizer, metrics, clock, log, pki, options, signal, onClose } = context
  const { signer, routes, start } = await openSigner(context)
  const minter = createAddonTokenMinter({ signer, clock })
  const proxy = new ServiceProxy({
    view,
    targets: await TargetCache.open({ view, log, signal }),
    isAllowedTarget: targetTestOf(options),
    dialer,
    authorizer,
    impersonate: impersonation({ authorizer, denial }),
    minter: new AddonTokenCache({ minter, signer, clock }),
    limits: limitsOf(options),
    recheckMs: options.addonRecheckPeriod,
    sameOriginNamespaces: new Set(options.addonSameOriginNamespace),
    isIdentityHeader: addonIdentityTest({
      username: options.requestheaderUsernameHeaders,
      uid: options.requestheaderUidHeaders,
      group: options.requestheaderGroupHeaders,
      extraPrefix: options.requestheaderExtraHeadersPrefix,
    }),
    clusterCaPem: () => pki.clusterCa.bundlePem,
    metrics,
    clock,
    log: log.child({ part: 'service proxy' }),
  })
  const running = proxy.run(signal)
  onClose('service proxy', () => running)
  return {
    routes,
    serviceProxy: { proxy, subresources },
    resources: [
      { entry: sessionEntry, handle: liveResourceHandler(liveSessions(proxy.sessions), clock) },
    ],
    start,
  }
}

const optionsKinds = {
  services: 'ServiceProxyOptions',
  pods: 'PodProxyOptions',
  nodes: 'NodeProxyOptions',
} as const

const subresources = Object.entries(optionsKinds).map(([resource, kind]) => ({
  group: '',
  version: 'v1',
  resource,
  name: 'proxy',
  kind: { group: '', version: 'v1', kind },
  verbs: ['create', 'delete', 'get', 'patch', 'update'],
}))

interface OpenSigner {
  readonly signer: AddonSigner
  readonly routes: readonly PathRoute[]
  readonly start: () => Promise<void>
}

/** The proposal's signing key is the serving key; `dedicated` is a key of its own, which is published. */
async function openSigner(context: OpenContext): Promise<OpenSigner> {
  const { options, view, sealed, log, signal, serving } = context
  if (options.addonTokenKey === 'serving')
    return {
      signer: new ServingKeySigner(serving),
      routes: [],
      start: async () => warnIfUntrusted(context),
    }
  const signer = await DedicatedKeySigner.open({ values: sealed, log, signal })
  const keys: PathRoute = {
    path: addonJwksPath,
    handle: (_request, response) => {
      const { document } = signer
      response.writeHead(200, {
        'Content-Type': 'application/jwk-set+json',
        'Content-Length': document.length,
        'Cache-Control': 'public, max-age=60',
      })
      response.end(document)
    },
  }
  const rotation: PathRoute = {
    path: addonKeyRotationPath,
    methods: ['POST'],
    handle: async (_request, response, aborted) => {
      await signer.rotate(aborted)
      sendJson(response, { keyId: signer.current.kid })
    },
  }
  const start = () => permitKeyReaders(view, addonJwksPath, signal)
  return { signer, routes: [keys, rotation], start }
}

/** Guards accept the serving key only with a certificate of the cluster's CA. */
function warnIfUntrusted({ serving, pki, clock, log }: OpenContext): void {
  const why = problemOfServingKey(serving.current, pki.clusterCa.bundlePem, clock.now())
  if (why !== undefined)
    log.warn(
      { why },
      "guards will reject the users of add-ons: the serving certificate is not of the cluster's CA; use --addon-token-key dedicated",
    )
}

const limitsOf = (options: ServerOptions): ProxyLimits => ({
  requestsPerSecond: options.addonRequestsPerSecond,
  requestBurst: options.addonRequestBurst,
  maxRequests: options.addonMaxRequests,
  maxTunnels: options.addonMaxTunnels,
  bytesPerSecond: options.addonBytesPerSecond,
  maxRequestMs: options.addonMaxRequestAge,
  maxTunnelMs: options.addonMaxTunnelAge,
  idleMs: options.addonIdleTimeout,
})

const targetTestOf = ({ addonAllowedCidr: ranges }: ServerOptions): AddressTest =>
  ranges.length > 0 ? rangeTest(ranges) : anyAddress
