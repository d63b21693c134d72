import type { X509Certificate } from 'node:crypto'
import {
  CommandFailed,
  type OptionTable,
  readTrustedFile,
  SallyportError,
  systemClock,
  systemErrorCode,
  withinTime,
} from '../../core/index.ts'
import type { ClusterLocation } from '../../kubeconfig/index.ts'
import {
  type ClusterSourceValues,
  clusterSourceOptions,
  openClusterSource,
  outputOption,
} from '../cluster-source.ts'
import { asWrongUsage, defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { clusterInfoAsJson } from './show.ts'

const commonOptions = { ...clusterSourceOptions, ...outputOption } as const satisfies OptionTable

const yesOption = {
  yes: {
    type: 'boolean',
    default: false,
    describe: "remove a root that the server's own certificate is verified with",
    group: 'Cluster',
  },
} as const satisfies OptionTable

interface Change {
  readonly source: ClusterSourceValues
  readonly output: string
  /** What has changed, in a few words. */
  readonly done: string
  readonly change: (location: ClusterLocation) => ClusterLocation
}

async function applyChange(
  { source, output, done, change }: Change,
  io: Io,
): Promise<ClusterLocation> {
  const { changeClusterInfo, readClusterInfo, rootReports } = await import(
    '../../bootstrap/index.ts'
  )
  const view = await openClusterSource(source, io)
  const changed = await changeClusterInfo(view, change, io.drain)
  const info = await readClusterInfo(view, io.drain)
  if (output === 'json') {
    const roots = rootReports(info.location.rootsPem)
    io.stdout(`${JSON.stringify({ changed, ...clusterInfoAsJson(info, roots) })}\n`)
  } else if (changed) io.stdout(`${done}; every signing token signs cluster-info again\n`)
  else io.stdout('nothing to do: cluster-info says so already\n')
  return info.location
}

/** Clients elsewhere may fare better, so this is no failure. */
async function warnOfAddresses(location: ClusterLocation, io: Io): Promise<void> {
  const { askLocation } = await import('../../bootstrap/refresh/index.ts')
  const { withLocation } = await import('../../kubeconfig/index.ts')
  const warnings = location.addresses.map(async (address) => {
    const cluster = withLocation({ server: address }, { ...location, addresses: [address] })
    const asked = withinTime(probeWithinMs, io.drain, (signal) =>
      askLocation({ cluster, user: {}, signal }),
    )
    const problem = await asked.then(
      () => undefined,
      (error: unknown) => error,
    )
    if (problem === undefined || isRefusal(problem)) return
    const why = problem instanceof Error ? problem.message : 'unknown failure'
    io.stderr(`warning: ${address} cannot be used from here: ${why}\n`)
  })
  await Promise.all(warnings)
}

const probeWithinMs = 5_000

/** Whoever is refused has reached the cluster. */
const isRefusal = (error: unknown): boolean =>
  error instanceof SallyportError && error.code === 'LOCATION_REFUSED'

/** `sallyport cluster-info set-server`. */
export const clusterInfoSetServerCommand = defineCommand({
  command: 'sallyport cluster-info set-server',
  summary: 'Say at which addresses the cluster is reached, in place of those it found itself',
  arguments: [
    {
      name: 'ADDRESS',
      describe: 'host, host:port or https URL; the first is for clients that know only one',
      required: true,
      repeatable: true,
    },
  ],
  options: {
    'system-roots': {
      type: 'boolean',
      describe:
        "also trust the roots of the client's system, for an address with a public certificate",
      group: 'Cluster',
      defaultText: 'as before',
    },
    probe: {
      type: 'boolean',
      default: true,
      describe: 'warn of addresses that cannot be reached and verified from here',
      group: 'Cluster',
    },
    ...commonOptions,
  },
  examples: [
    {
      line: 'sallyport cluster-info set-server https://api.example.com:6443',
      does: 'those who join from now on, and those who refresh, use the load balancer',
    },
    {
      line: 'sallyport cluster-info set-server 10.0.0.1 10.0.0.2 10.0.0.3',
      does: 'clients of Sallyport try until one works; others use the first',
    },
  ],
  run: async ({ options: { output, systemRoots, probe, ...source }, args }, io) => {
    const { parseApiAddress } = await import('../../bootstrap/discovery/index.ts')
    const { withAddresses } = await import('../../bootstrap/index.ts')
    const [first = '', ...others] = asWrongUsage(() => args.map(parseApiAddress))
    const change = withAddresses([first, ...others], systemRoots)
    const done = `the cluster is reached at ${[first, ...others].join(', ')}`
    const location = await applyChange({ source, output, done, change }, io)
    if (probe) await warnOfAddresses(location, io)
  },
})

async function certificatesIn(path: string): Promise<X509Certificate[]> {
  const { PemInvalid, parseCertificates } = await import('../../pki/trust/index.ts')
  try {
    return parseCertificates(await readTrustedFile(path, 'given'))
  } catch (cause) {
    if (cause instanceof CommandFailed) throw cause
    const why = cause instanceof PemInvalid ? cause.message : systemErrorCode(cause)
    if (why === undefined) throw cause
    throw new CommandFailed('CA_FILE_INVALID', `cannot use ${path}: ${why}`, {
      hint: 'it must hold one or more CA certificates in PEM form',
      cause,
    })
  }
}

/** `sallyport cluster-info add-ca`. */
export const clusterInfoAddCaCommand = defineCommand({
  command: 'sallyport cluster-info add-ca',
  summary: "Have clients trust a further root for the cluster's servers",
  arguments: [{ name: 'FILE', describe: 'CA certificates in PEM form', required: true }],
  options: commonOptions,
  examples: [
    {
      line: 'sallyport cluster-info add-ca corporate-ca.crt',
      does: 'before a server shows a certificate of that CA (--tls-cert-file)',
    },
  ],
  run: async ({ options: { output, ...source }, args: [path = ''] }, io) => {
    const { withRoots } = await import('../../bootstrap/index.ts')
    const { spkiPin } = await import('../../pki/trust/index.ts')
    const added = await certificatesIn(path)
    const done = `${added.map(spkiPin).join(', ')} is trusted as well`
    await applyChange({ source, output, done, change: withRoots(added, systemClock.now()) }, io)
  },
})

/** `sallyport cluster-info remove-ca`. */
export const clusterInfoRemoveCaCommand = defineCommand({
  command: 'sallyport cluster-info remove-ca',
  summary: "Have clients no longer trust a root for the cluster's servers",
  arguments: [
    { name: 'PIN', describe: 'sha256:... of the root, as `show` prints it', required: true },
  ],
  options: { ...yesOption, ...commonOptions },
  examples: [{ line: 'sallyport cluster-info remove-ca "$PIN"', does: 'takes back `add-ca`' }],
  run: async ({ options: { output, yes, ...source }, args: [pin = ''] }, io) => {
    const { readClusterInfo, withoutRoot } = await import('../../bootstrap/index.ts')
    const view = await openClusterSource(source, io)
    const wanted = pin.toLowerCase()
    const { ownPins } = await readClusterInfo(view, io.drain)
    if (ownPins.includes(wanted) && !yes)
      throw new CommandFailed(
        'CA_IN_USE',
        `${wanted} is the root of the server's own certificates: clients could not verify it any more`,
        {
          hint: 'to replace the CA use `sallyport pki rotate-ca`; if the server shows another certificate (--tls-cert-file), add --yes',
        },
      )
    const done = `${wanted} is no longer trusted`
    await applyChange({ source, output, done, change: withoutRoot(wanted) }, io)
  },
})
