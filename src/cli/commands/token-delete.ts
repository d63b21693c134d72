import { clusterSourceOptions, openClusterSource } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { outputOption } from '../shared-options.ts'

/** `sallyport token delete`. */
export const tokenDeleteCommand = defineCommand({
  command: 'sallyport token delete',
  summary: 'Delete a bootstrap token: nobody joins with it any more, and what it signed is gone',
  arguments: [
    {
      name: 'ID',
      describe: 'the six letters before the dot; of a whole token only those are read',
      required: true,
    },
  ],
  options: { ...clusterSourceOptions, ...outputOption },
  examples: [
    {
      line: 'sallyport token delete abcdef',
      does: 'certificates that it has given stay; `user revoke --serial` ends those',
    },
  ],
  run: async ({ options: values, args: [given = ''] }, io) => {
    const { deleteToken } = await import('../../discovery/index.ts')
    const id = given.split('.', 1)[0] ?? ''
    await deleteToken(await openClusterSource(values, io), id, io.drain)
    io.stdout(values.output === 'json' ? `${JSON.stringify({ id })}\n` : `token ${id} is deleted\n`)
  },
})
