import type { UserRecord } from '../../apiserver/users/index.ts'
import type { Revocation } from '../../authn/index.ts'
import { systemClock } from '../../core/index.ts'
import { dataDirectory, dataDirectoryOption, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { textTable } from '../text-table.ts'

function stateOf(user: UserRecord, revocations: readonly Revocation[]): string {
  const revoked = revocations.some(
    ({ type, value }) =>
      (type === 'user' && value === user.name) ||
      (type === 'certificate' && value.toLowerCase() === user.serial.toLowerCase()),
  )
  if (revoked) return 'revoked'
  return Date.parse(user.expires) < systemClock.now() ? 'expired' : 'valid'
}

/** `sallyport user list`. */
export const userListCommand = defineCommand({
  command: 'sallyport user list',
  summary: 'List the certificates that `user create` has issued, and which of them still count',
  options: { ...dataDirectoryOption, ...outputOption },
  examples: [{ line: 'sallyport user list', does: 'a table of users, serials, ends and states' }],
  run: async ({ options: { dataDir, output } }, io) => {
    const { openClusterAccess } = await import('../cluster-access.ts')
    const { listUserRecords } = await import('../../apiserver/users/index.ts')
    const { listRevocations } = await import('../../authn/index.ts')
    const { view } = await openClusterAccess(dataDirectory(dataDir, io))
    const [records, { revocations }] = await Promise.all([
      listUserRecords(view, io.drain),
      listRevocations(view, io.drain),
    ])
    const users = records.map((user) => ({ ...user, state: stateOf(user, revocations) }))
    if (output === 'json') io.stdout(`${JSON.stringify({ users })}\n`)
    else if (users.length === 0)
      io.stdout('No users yet; make one with `sallyport user create NAME`.\n')
    else
      io.stdout(
        textTable(
          ['NAME', 'GROUPS', 'STATE', 'EXPIRES', 'SERIAL'],
          users.map(({ name, groups, state, expires, serial }) => [
            name,
            groups.join(',') || '-',
            state,
            expires,
            serial,
          ]),
        ),
      )
  },
})
