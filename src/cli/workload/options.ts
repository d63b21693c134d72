import { logLevels, type OptionTable, type OptionValues, WrongUsage } from '../../core/index.ts'
import type { WorkloadOptions, WorkloadPort } from '../../workload/index.ts'
import { outputOption } from '../cluster-source.ts'

const isDnsLabel = (text: string): string | undefined =>
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
    ? undefined
    : "must be a name of lower-case letters, digits and '-'"

/** How `sallyport workload run` is told what to do. */
export const workloadOptions = {
  namespace: {
    type: 'string',
    describe: 'namespace of the Pod',
    group: 'Pod',
    placeholder: 'NS',
    defaultText: "the kubeconfig's",
    check: isDnsLabel,
  },
  'service-account': {
    type: 'string',
    default: 'default',
    describe: 'service account that the process is',
    group: 'Pod',
    placeholder: 'NAME',
  },
  service: {
    type: 'string',
    describe: 'Service that the process is an endpoint of; it must exist and select Pods by labels',
    group: 'Pod',
    placeholder: 'NAME',
  },
  port: {
    type: 'string',
    repeatable: true,
    describe:
      'port that the process serves on the address of the Pod, the only one that others are led to; the first is PORT in its environment and must accept connections before the Pod is ready',
    group: 'Pod',
    placeholder: '[NAME=]N',
    check: (text) => (readPort(text) ? undefined : 'must be a port, or NAME=PORT'),
  },
  name: {
    type: 'string',
    describe: 'name of the Pod',
    group: 'Pod',
    placeholder: 'NAME',
    defaultText: 'of the Service or the command, with something random',
    check: isDnsLabel,
  },
  label: {
    type: 'string',
    repeatable: true,
    describe: 'label of the Pod, besides those that the Service selects',
    group: 'Pod',
    placeholder: 'KEY=VALUE',
    check: (text) => (/^[^=]+=/.test(text) ? undefined : 'must be KEY=VALUE'),
  },
  'pod-ip': {
    type: 'address',
    describe: 'address of the Pod, on which the process is to listen',
    group: 'Pod',
    placeholder: 'IP',
    defaultText: 'the one from which this machine reaches the API',
  },
  audience: {
    type: 'string',
    repeatable: true,
    describe:
      'another token, for this audience, beside `token`; in a file of that name, or of the host of a URL',
    group: 'Service account',
    placeholder: '[FILE=]AUDIENCE',
    check: problemOfAudience,
  },
  'token-lifetime': {
    type: 'duration',
    min: 600_000,
    max: 7 * 24 * 3_600_000,
    default: 3_600_000,
    describe: 'how long tokens live; they are replaced at 80 % of it',
    group: 'Service account',
  },
  'in-cluster': {
    type: 'boolean',
    default: true,
    describe:
      'show the files at /var/run/secrets/kubernetes.io/serviceaccount, to the process alone (Linux only); with --no-in-cluster only clients that read KUBECONFIG find them',
    group: 'Service account',
  },
  'lease-duration': {
    type: 'duration',
    min: 5_000,
    max: 300_000,
    default: 40_000,
    describe: 'how long the Pod stays after this command was killed or cut off',
    group: 'End',
  },
  'grace-period': {
    type: 'duration',
    min: 0,
    default: 30_000,
    describe: 'how long the process may take to end when it is told to',
    group: 'End',
  },
  kubeconfig: {
    type: 'path',
    describe:
      'kubeconfig of this machine, from `user create NAME --machine` or `join --as machine NAME`',
    group: 'Cluster',
    placeholder: 'FILE',
    defaultText: '$KUBECONFIG, then ~/.kube/config',
  },
  context: {
    type: 'string',
    describe: 'context of the kubeconfig',
    group: 'Cluster',
    placeholder: 'NAME',
    defaultText: 'the current one',
  },
  'log-level': {
    type: 'choice',
    choices: logLevels,
    default: 'warn',
    describe: 'what to tell on standard error',
    group: 'Output',
  },
  ...outputOption,
} as const satisfies OptionTable

/** What those options were given as. */
export type WorkloadValues = OptionValues<typeof workloadOptions>

/** The workload that the options and the words after `--` describe. */
export function readWorkload(
  values: WorkloadValues,
  command: readonly string[],
  defaultNamespace: string,
): WorkloadOptions {
  const [program, ...words] = command
  if (program === undefined) throw new WrongUsage('say what to run, after --')
  const { service, name, podIp } = values
  if (service !== undefined && values.port.length === 0)
    throw new WrongUsage('--service needs the --port on which the process serves')
  return {
    namespace: values.namespace ?? defaultNamespace,
    serviceAccount: values.serviceAccount,
    ...(service !== undefined && { service }),
    ports: values.port.flatMap((text) => readPort(text) ?? []),
    audiences: readAudiences(values.audience),
    ...(name !== undefined && { name }),
    ...(podIp !== undefined && { ip: podIp }),
    labels: Object.fromEntries(values.label.map((text) => splitAt(text, text.indexOf('=')))),
    tokenLifetimeMs: values.tokenLifetime,
    leaseMs: values.leaseDuration,
    graceMs: values.gracePeriod,
    inCluster: values.inCluster,
    command: [program, ...words],
  }
}

const splitAt = (text: string, at: number): [string, string] => [
  text.slice(0, at),
  text.slice(at + 1),
]

function readPort(text: string): WorkloadPort | undefined {
  const match = /^(?:([a-z0-9](?:[-a-z0-9]{0,13}[a-z0-9])?)=)?(\d{1,5})$/.exec(text)
  const port = Number(match?.[2])
  if (!match || port < 1 || port > 65_535) return undefined
  return match[1] === undefined ? { port } : { name: match[1], port }
}

const ownFiles = ['token', 'ca.crt', 'namespace']
const fileName = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/

/** `FILE=AUDIENCE`, or an audience whose file is named after it. */
function readAudience(text: string): { readonly file: string; readonly audience: string } {
  const [file, audience] = splitAt(text, text.indexOf('='))
  if (text.includes('=') && fileName.test(file)) return { file, audience }
  return { file: URL.canParse(text) ? new URL(text).hostname : text, audience: text }
}

function problemOfAudience(text: string): string | undefined {
  const { file, audience } = readAudience(text)
  if (audience === '') return 'must not be empty'
  if (!fileName.test(file)) return `needs a file name before it, as in FILE=${text}`
  return ownFiles.includes(file) ? `must not go into the file ${file}` : undefined
}

function readAudiences(texts: readonly string[]) {
  const audiences = texts.map(readAudience)
  const files = new Set(audiences.map(({ file }) => file))
  if (files.size < audiences.length)
    throw new WrongUsage('two of --audience go into one file; give names as in FILE=AUDIENCE')
  return audiences
}
