import { logLevels, type OptionTable, type OptionValues } from '../../core/index.ts'
import { tunnelAgentOptions } from '../../tunnel/options/index.ts'
import { outputOption } from '../cluster-source.ts'

const finding = 'Finding the cluster'
const identity = 'Who joins'
const agent = 'Tunnel agent'
const files = 'Output'

const secretText = { type: 'string', secret: true, group: finding, placeholder: 'TOKEN' } as const
const secretFile = { type: 'string', group: finding, placeholder: 'FILE' } as const

/** Every option of `sallyport join`; those of kubeadm's join have its names. */
export const joinOptions = {
  token: {
    ...secretText,
    describe: 'ID.SECRET, or with the pins of the CA ID.SECRET@sha256:...; - reads standard input',
  },
  'token-file': { ...secretFile, describe: 'file that has the token; - is standard input' },
  'discovery-token': {
    ...secretText,
    describe: 'token that finds the cluster, where another one gets the certificate',
  },
  'discovery-token-file': { ...secretFile, describe: 'file that has it' },
  'tls-bootstrap-token': {
    ...secretText,
    describe: 'token that gets the certificate, where another one finds the cluster',
  },
  'tls-bootstrap-token-file': { ...secretFile, describe: 'file that has it' },
  'discovery-token-ca-cert-hash': {
    type: 'string',
    repeatable: true,
    group: finding,
    placeholder: 'sha256:HEX',
    describe: "pin of the cluster's CA; every root that it announces must have one",
  },
  'discovery-token-unsafe-skip-ca-verification': {
    type: 'boolean',
    default: false,
    group: finding,
    describe: 'accepted from join lines of kubeadm; pins are optional here anyway',
  },
  'cluster-info-file': {
    type: 'string',
    group: finding,
    placeholder: 'FILE',
    describe: 'document that locates the cluster, in place of ADDRESS; - is standard input',
  },
  'cluster-info-url': {
    type: 'string',
    group: finding,
    placeholder: 'URL',
    describe: 'https URL of such a document, verified with the roots of this system',
  },
  'discovery-file': {
    type: 'string',
    group: finding,
    placeholder: 'FILE|URL',
    describe: "kubeadm's name for both",
  },
  'require-jwt': {
    type: 'boolean',
    default: false,
    group: finding,
    describe: 'accept an answer only if it is signed as a whole, as Sallyport does',
  },
  'keep-address': {
    type: 'boolean',
    default: false,
    group: finding,
    describe: 'write ADDRESS into the kubeconfig, not the one that the cluster announces',
  },
  timeout: {
    type: 'duration',
    min: 0,
    default: 5 * 60_000,
    group: finding,
    describe: 'how long to try while the server is not up yet; 0 tries once',
  },
  'token-timeout': {
    type: 'duration',
    min: 0,
    default: 30_000,
    group: finding,
    describe: 'how long to try while the cluster answers and does not know the token',
  },
  as: {
    type: 'choice',
    choices: ['node', 'machine', 'user'],
    default: 'node',
    group: identity,
    describe: 'join as a node, as the machine NAME for `workload run`, or as the person NAME',
  },
  'node-name': {
    type: 'string',
    group: identity,
    placeholder: 'NAME',
    defaultText: "this machine's host name",
    describe: 'name of the node',
  },
  group: {
    type: 'string',
    repeatable: true,
    group: identity,
    placeholder: 'GROUP',
    describe: 'with --as user: group to be in',
  },
  lifetime: {
    type: 'duration',
    min: 600_000,
    // 50 years: what Kubernetes can write down is not much more.
    max: 50 * 365 * 24 * 3_600_000,
    group: identity,
    defaultText: 'what the cluster gives',
    describe: 'how long the certificate should be valid',
  },
  'approval-timeout': {
    type: 'duration',
    min: 0,
    default: 60 * 60_000,
    group: identity,
    describe: 'how long to wait for approval; 0 asks and ends, and the next run goes on',
  },
  'discovery-only': {
    type: 'boolean',
    default: false,
    group: identity,
    describe: 'only find the cluster: the kubeconfig has its address and CA, and no user',
  },
  out: {
    type: 'path',
    group: files,
    placeholder: 'FILE',
    defaultText: 'NAME.kubeconfig in this directory',
    describe: 'file for the kubeconfig (mode 0600); - is standard output',
  },
  'cert-dir': {
    type: 'path',
    group: files,
    placeholder: 'DIR',
    describe: 'also write ca.crt, client.crt and client.key there, for other programs',
  },
  renew: {
    type: 'boolean',
    default: false,
    group: files,
    describe: 'renew the certificate in the file with itself, however long it is good',
  },
  force: {
    type: 'boolean',
    default: false,
    group: files,
    describe: 'join anew whatever is in the file',
  },
  'log-level': {
    type: 'choice',
    choices: logLevels,
    default: 'info',
    group: files,
    describe: 'what to tell besides the steps; trace shows every request and decision',
  },
  ...outputOption,
  'tunnel-agent': {
    type: 'boolean',
    default: false,
    group: agent,
    describe: 'then run a tunnel agent with the certificate, until told to end',
  },
  'tunnel-server': {
    type: 'string',
    repeatable: true,
    group: agent,
    placeholder: 'HOST[:PORT]',
    defaultText: 'the host of the API, port 8091',
    describe: 'tunnel server of the agent',
  },
  'health-server-port': { ...tunnelAgentOptions['health-server-port'], group: agent },
  'admin-server-port': { ...tunnelAgentOptions['admin-server-port'], group: agent },
} as const satisfies OptionTable

/** What was said on the command line of `sallyport join`. */
export type JoinOptions = OptionValues<typeof joinOptions>
