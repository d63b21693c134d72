import type { KubeClient } from '../../client/index.ts'
import { CommandFailed, isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'
import type { WorkloadPort } from './pod-object.ts'

/** What makes a Pod an endpoint of a Service: the labels that it selects, and ports under the names that it uses. */
export interface ServicePlace {
  readonly labels: Readonly<Record<string, string>>
  readonly ports: readonly WorkloadPort[]
}

/** Finds out how to become an endpoint of a Service. */
export async function placeInService(
  client: Pick<KubeClient, 'get'>,
  key: { readonly namespace: string; readonly name: string },
  ports: readonly WorkloadPort[],
  signal: AbortSignal,
): Promise<ServicePlace> {
  const service = await client.get(wellKnownKinds.service, key, signal)
  const port = ports[0]?.port ?? 8080
  if (!service)
    throw failure('NO_SERVICE', `there is no Service ${key.name} in namespace ${key.namespace}`, {
      hint: `make it with \`kubectl create service clusterip ${key.name} --tcp=80:${port} --namespace ${key.namespace}\``,
    })
  return { labels: selectorOf(service), ports: matchPorts(service, ports) }
}

const failure = (code: string, message: string, options: { hint: string }) =>
  new CommandFailed(code, message, options)

function selectorOf(service: KubeObject): Record<string, string> {
  const spec = service['spec']
  const selector = isRecord(spec) ? spec['selector'] : undefined
  const labels = Object.entries(isRecord(selector) ? selector : {})
  if (labels.length === 0)
    throw failure('SERVICE_SELECTS_NOTHING', `Service ${service.metadata.name} has no selector`, {
      hint: 'only a Service that selects Pods by labels can have this workload as an endpoint',
    })
  return Object.fromEntries(labels.map(([key, value]) => [key, String(value)]))
}

/** The ports of Pods that a Service sends to: numbers, or names that a Pod gives its ports. */
function targetsOf(service: KubeObject): (number | string)[] {
  const spec = service['spec']
  const listed = isRecord(spec) && Array.isArray(spec['ports']) ? spec['ports'] : []
  return listed.filter(isRecord).flatMap(({ targetPort, port }) => {
    const target = targetPort ?? port
    return typeof target === 'number' || typeof target === 'string' ? [target] : []
  })
}

/** Gives a port without a name the one that the Service looks for, and makes sure that any is looked for. */
function matchPorts(service: KubeObject, ports: readonly WorkloadPort[]): WorkloadPort[] {
  const targets = targetsOf(service)
  const taken = new Set(ports.map(({ name }) => name))
  const names = targets.filter((target) => typeof target === 'string' && !taken.has(target))
  const named = ports.map((each) => {
    if (each.name !== undefined || targets.includes(each.port)) return each
    const name = names.shift()
    return typeof name === 'string' ? { name, port: each.port } : each
  })
  const isSent = ({ name, port }: WorkloadPort) =>
    targets.includes(port) || (name !== undefined && targets.includes(name))
  if (named.some(isSent)) return named
  const wanted = targets.map((target) => (typeof target === 'number' ? target : `${target}=PORT`))
  throw failure(
    'PORT_NOT_IN_SERVICE',
    `Service ${service.metadata.name} sends to port ${targets.join(', ')} of its Pods, ${ports.length === 0 ? 'and no --port is given' : `not to ${ports.map(({ port }) => port).join(', ')}`}`,
    {
      hint: `let the process listen there and say --port ${wanted[0] ?? 'N'}, or change the Service`,
    },
  )
}
