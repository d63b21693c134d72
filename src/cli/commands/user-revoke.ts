import { kubeTime, type OptionTable, systemClock, WrongUsage } from '../../core/index.ts'
import { defineCommand } from '../command.ts'
import { dataDirectory } from '../data-directory.ts'
import { dataDirectoryOption, outputOption } from '../shared-options.ts'

const options = {
  serial: {
    type: 'string',
    describe: 'revoke one certificate by its serial number instead of a whole user',
    group: 'User',
    placeholder: 'HEX',
    check: (text) =>
      /^[0-9a-f:]+$/i.test(text) ? undefined : 'must be a serial number in hexadecimal',
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
  ],
  run: async ({ options: values, args: [name] }, io) => {
    if ((name === undefined) === (values.serial === undefined))
      throw new WrongUsage('give either the NAME of a user or the --serial of a certificate')
    const { openClusterAccess } = await import('../cluster-access.ts')
    const { addRevocation } = await import('../../authn/index.ts')
    const { view } = await openClusterAccess(dataDirectory(values.dataDir, io))
    const when = kubeTime(systemClock.now())
    const note = values.reason === undefined ? when : `${when} ${values.reason}`
    const added = await addRevocation(
      view,
      name === undefined
        ? { type: 'certificate', value: values.serial ?? '', note }
        : { type: 'user', value: name, note },
      io.drain,
    )
    const what = name === undefined ? `certificate ${values.serial}` : `user ${name}`
    io.stdout(
      values.output === 'json'
        ? `${JSON.stringify({ revoked: what, alreadyRevoked: !added })}\n`
        : added
          ? `${what} is revoked\n`
          : `${what} was revoked before\n`,
    )
  },
})
