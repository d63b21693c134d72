import {
  type ClusterView,
  kubeTime,
  machineIdentity,
  type OptionTable,
  systemClock,
  WrongUsage,
} from '../../core/index.ts'
import { dataDirectory, dataDirectoryOption, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'

const options = {
  serial: {
    type: 'string',
    describe: 'revoke one certificate by its serial number instead of a whole user',
    group: 'User',
    placeholder: 'HEX',
    check: (text) =>
      /^[0-9a-f:]+$/i.test(text) ? undefined : 'must be a serial number in hexadecimal',
  },
  machine: {
    type: 'boolean',
    default: false,
    describe: 'NAME is a machine, of `user create --machine` or `join --as machine`',
    group: 'User',
  },
  reason: {
    type: 'string',
    describe: 'why, for those who read the list later',
    group: 'User',
    placeholder: 'TEXT',
  },
  ...dataDirectoryOption,
  ...outputOption,
} as const satisfies OptionTable

/** `sallyport user revoke`. */
export const userRevokeCommand = defineCommand({
  command: 'sallyport user revoke',
  summary: 'Refuse a user or one certificate from the next request on, and cut what they have open',
  arguments: [{ name: 'NAME', describe: 'the user; every credential of that name is refused' }],
  options,
  examples: [
    {
      line: 'sallyport user revoke jane --reason "left the company"',
      does: 'everything of jane is refused',
    },
    { line: 'sallyport user revoke --serial 5A3F0C', does: 'only that certificate is refused' },
    {
      line: 'sallyport user revoke laptop --machine',
      does: 'what that machine runs as Pods ends within the time of its leases',
    },
  ],
  run: async ({ options: values, args: [name] }, io) => {
    const user = userOf(name, values)
    const { openClusterAccess } = await import('../cluster-access.ts')
    const { addRevocation } = await import('../../authn/index.ts')
    const { view } = await openClusterAccess(dataDirectory(values.dataDir, io))
    if (user !== undefined && (await isOnlyMachine(view, user, io.drain)))
      io.stderr(
        `warning: nobody called ${user} was made here, but a machine: to revoke that one, add --machine\n`,
      )
    const when = kubeTime(systemClock.now())
    const note = values.reason === undefined ? when : `${when} ${values.reason}`
    const added = await addRevocation(
      view,
      user === undefined
        ? { type: 'certificate', value: values.serial ?? '', note }
        : { type: 'user', value: user, note },
      io.drain,
    )
    const what = user === undefined ? `certificate ${values.serial}` : `user ${user}`
    io.stdout(
      values.output === 'json'
        ? `${JSON.stringify({ revoked: what, alreadyRevoked: !added })}\n`
        : `${what} ${added ? 'is revoked' : 'was revoked before'}\n`,
    )
  },
})

/** The user that is meant; undefined where a certificate is. */
function userOf(
  name: string | undefined,
  { serial, machine }: { readonly serial?: string | undefined; readonly machine: boolean },
): string | undefined {
  if ((name === undefined) === (serial === undefined))
    throw new WrongUsage('give either the NAME of a user or the --serial of a certificate')
  if (machine && name === undefined) throw new WrongUsage('--machine goes with a NAME')
  return machine ? `${machineIdentity.userPrefix}${name}` : name
}

/** Whether a name that is taken for a user's is a machine's and nobody else's. */
async function isOnlyMachine(
  view: ClusterView,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { listUserRecords } = await import('../../apiserver/users/index.ts')
  const names = new Set((await listUserRecords(view, signal)).map((record) => record.name))
  return !names.has(name) && names.has(`${machineIdentity.userPrefix}${name}`)
}
