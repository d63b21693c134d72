import {
  CommandFailed,
  type OptionTable,
  systemClock,
  WrongUsage,
  wellKnown,
} from '../../core/index.ts'
import { defineCommand } from '../command.ts'
import { dataDirectory } from '../data-directory.ts'
import { dataDirectoryOption, outputOption } from '../shared-options.ts'
import { createLogger } from '../stderr-logger.ts'

const dayMs = 24 * 60 * 60_000

const options = {
  group: {
    type: 'string',
    repeatable: true,
    describe: 'group that the user is in; rights are given to users and groups by RBAC',
    group: 'User',
    placeholder: 'GROUP',
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

function requireName(name: string): void {
  if (name.trim() !== name || name === '' || /[\0-\x1f\x7f]/.test(name))
    throw new WrongUsage(`${JSON.stringify(name)} cannot be a user name`)
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
  ],
  run: async ({ options: values, args: [name = ''] }, io) => {
    requireName(name)
    const { openClusterAccess } = await import('../cluster-access.ts')
    const { openPki } = await import('../../pki/index.ts')
    const { createUser } = await import('../../server/users/index.ts')
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
    const user = {
      name,
      groups: values.group,
      lifetimeMs: values.lifetime,
      server: values.server ?? server,
    }
    const { record, kubeconfig } = await createUser(user, { view, pki, clock }, io.drain)
    const file = values.out ?? `${name.replaceAll(/[^\w.@-]/g, '_')}.kubeconfig`
    if (file === '-') {
      io.stdout(await renderKubeconfig(kubeconfig))
      return
    }
    await writeKubeconfig(file, kubeconfig).catch((cause: unknown) => {
      throw new CommandFailed('CANNOT_WRITE', `cannot write ${file}`, {
        cause,
        hint: `the certificate was issued; revoke it with \`sallyport user revoke --serial ${record.serial}\` or try another --out`,
      })
    })
    io.stdout(
      values.output === 'json'
        ? `${JSON.stringify({ ...record, kubeconfig: file })}\n`
        : `${file} makes you ${name}${values.group.length > 0 ? ` of ${values.group.join(', ')}` : ''} until ${record.expires} (serial ${record.serial})\n`,
    )
  },
})
