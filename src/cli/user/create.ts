import { lstat } from 'node:fs/promises'
import {
  type Clock,
  type ClusterView,
  CommandFailed,
  machineIdentity,
  type OptionTable,
  type OptionValues,
  problemOfUserName,
  SallyportError,
  systemClock,
  WrongUsage,
  wellKnown,
} from '../../core/index.ts'
import type { Pki } from '../../pki/index.ts'
import { dataDirectory, dataDirectoryOption, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { createLogger } from '../logger.ts'

const dayMs = 24 * 60 * 60_000

const options = {
  group: {
    type: 'string',
    repeatable: true,
    describe: 'group that the user is in; rights are given to users and groups by RBAC',
    group: 'User',
    placeholder: 'GROUP',
  },
  machine: {
    type: 'boolean',
    default: false,
    describe: 'NAME is a machine on which `sallyport workload run` runs processes as Pods',
    group: 'Machine',
  },
  namespace: {
    type: 'string',
    repeatable: true,
    describe: 'namespace in which the machine may run them',
    group: 'Machine',
    placeholder: 'NS',
    defaultText: 'default',
  },
  lifetime: {
    type: 'duration',
    min: 60_000,
    default: 365 * dayMs,
    describe: 'how long the certificate is valid',
    group: 'User',
  },
  server: {
    type: 'string',
    describe: 'URL of the API in the kubeconfig, where the user is on another machine',
    group: 'User',
    placeholder: 'URL',
    defaultText: "that of the administrator's kubeconfig",
  },
  out: {
    type: 'path',
    describe: 'file to write the kubeconfig to (mode 0600); - is the standard output',
    group: 'Output',
    placeholder: 'FILE',
    defaultText: 'NAME.kubeconfig in this directory',
  },
  ...dataDirectoryOption,
  ...outputOption,
} as const satisfies OptionTable

type Values = OptionValues<typeof options>

function requireName(name: string): void {
  const problem = problemOfUserName(name)
  if (problem !== undefined)
    throw new WrongUsage(`${JSON.stringify(name)} cannot be a user name: it ${problem}`)
  if (name.startsWith('system:'))
    throw new WrongUsage(`names that begin with system: are the cluster's own: ${name}`)
}

/** `sallyport user create`. */
export const userCreateCommand = defineCommand({
  command: 'sallyport user create',
  summary: "Make a person's kubeconfig with a client certificate; the server must be running",
  arguments: [{ name: 'NAME', describe: 'the user, as RBAC will know them', required: true }],
  options,
  examples: [
    { line: 'sallyport user create jane --group developers', does: 'writes jane.kubeconfig' },
    {
      line: 'kubectl create clusterrolebinding devs --clusterrole=edit --group=developers',
      does: 'gives the group rights; without any a user can do next to nothing',
    },
    {
      line: 'sallyport user create laptop --machine --namespace shop',
      does: 'writes laptop.kubeconfig, with which `workload run` runs processes as Pods of shop',
    },
  ],
  run: async ({ options: values, args: [name = ''] }, io) => {
    requireOptions(name, values)
    const file = values.out ?? `${name.replaceAll(/[^\w.@-]/g, '_')}.kubeconfig`
    if (values.out === undefined) await requireFree(file)
    const { openClusterAccess } = await import('../cluster-access.ts')
    const { openPki } = await import('../../pki/index.ts')
    const { renderKubeconfig, writeKubeconfig } = await import('../../kubeconfig/index.ts')
    const directory = dataDirectory(values.dataDir, io)
    const { view, server } = await openClusterAccess(directory)
    const clock = systemClock
    const log = createLogger({
      level: 'warn',
      format: 'text',
      clock,
      write: (line) => io.stderr(line),
    })
    const pki = await openPki(directory.pki, { clock, log })
    if (values.group.includes(wellKnown.masters))
      io.stderr(`warning: ${name} will be in ${wellKnown.masters}: no RBAC rule can limit them\n`)
    const parts = { view, pki, clock }
    await requireNotRevoked(
      values.machine ? `${machineIdentity.userPrefix}${name}` : name,
      view,
      io.drain,
    )
    const { record, kubeconfig } = await create(
      name,
      { ...values, server: values.server ?? server },
      parts,
      io.drain,
    )
    if (file === '-') {
      io.stdout(await renderKubeconfig(kubeconfig))
      return
    }
    const as = values.out === undefined ? 'new' : 'any'
    await writeKubeconfig(file, kubeconfig, as).catch((cause: unknown) => {
      const why = cause instanceof SallyportError ? cause.message : `cannot write ${file}`
      throw new CommandFailed('CANNOT_WRITE', why, {
        cause,
        hint: `the certificate was issued; revoke it with \`sallyport user revoke --serial ${record.serial}\` or try another --out`,
      })
    })
    io.stdout(
      values.output === 'json'
        ? `${JSON.stringify({ ...record, kubeconfig: file })}\n`
        : `${file} makes you ${resultOf(name, values)} until ${record.expires} (serial ${record.serial})\n`,
    )
  },
})

/** A kubeconfig holds a key that may be nowhere else: none is overwritten that was not named. */
async function requireFree(file: string): Promise<void> {
  const found = await lstat(file).catch(() => undefined)
  if (found)
    throw new CommandFailed('FILE_EXISTS', `${file} exists already and is not overwritten`, {
      hint: 'choose another file with --out, or replace this one by naming it there',
    })
}

/** Its certificate would be refused, and taking the name off the list would bring the old certificates back. */
async function requireNotRevoked(
  user: string,
  view: ClusterView,
  signal: AbortSignal,
): Promise<void> {
  const { listRevocations } = await import('../../authn/index.ts')
  const { revocations } = await listRevocations(view, signal)
  if (!revocations.some(({ type, value }) => type === 'user' && value === user)) return
  throw new CommandFailed(
    'USER_REVOKED',
    `user ${user} is revoked, and so would be a new certificate`,
    {
      hint: 'choose another name; or revoke each old certificate (`sallyport user list`, `user revoke --serial`), and only then take the name off the ConfigMap kube-system/sallyport-revoked',
    },
  )
}

function requireOptions(name: string, { machine, namespace, group, server }: Values): void {
  requireName(name)
  if (server !== undefined && !URL.canParse(server))
    throw new WrongUsage(`--server must be a URL, not ${JSON.stringify(server)}`)
  if (!machine && namespace.length > 0)
    throw new WrongUsage('--namespace goes with --machine; people get rights by RBAC')
  if (machine && group.length > 0)
    throw new WrongUsage('--group does not go with --machine: machines are in groups of their own')
}

/** Makes a person, or a machine. */
async function create(
  name: string,
  values: Omit<Values, 'server'> & { readonly server: string },
  parts: { readonly view: ClusterView; readonly pki: Pki; readonly clock: Clock },
  signal: AbortSignal,
) {
  const { createMachine, createUser, problemOfMachineName } = await import(
    '../../apiserver/users/index.ts'
  )
  const { group: groups, lifetime: lifetimeMs, server } = values
  if (!values.machine) return createUser({ name, groups, lifetimeMs, server }, parts, signal)
  const problem = problemOfMachineName(name)
  if (problem !== undefined) throw new WrongUsage(problem)
  const [first = 'default', ...more] = values.namespace
  return createMachine({ name, namespaces: [first, ...more], lifetimeMs, server }, parts, signal)
}

function resultOf(name: string, { machine, namespace, group }: Values): string {
  if (machine)
    return `machine ${name}, which runs workloads in ${namespace.join(', ') || 'default'},`
  return `${name}${group.length > 0 ? ` of ${group.join(', ')}` : ''}`
}
