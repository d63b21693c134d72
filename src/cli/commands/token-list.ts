import { systemClock } from '../../core/index.ts'
import { clusterSourceOptions, openClusterSource } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { outputOption } from '../shared-options.ts'
import { textTable } from '../text-table.ts'
import { tokenHeadings, tokenJson, tokenRow } from '../token-report.ts'

/** `sallyport token list`. */
export const tokenListCommand = defineCommand({
  command: 'sallyport token list',
  summary: 'List the bootstrap tokens: life left, usages, uses left; no secrets',
  options: { ...clusterSourceOptions, ...outputOption },
  examples: [
    {
      line: 'sallyport token list',
      does: 'a table of all tokens, also of those that do not count',
    },
    {
      line: 'sallyport token list --kubeconfig admin.conf',
      does: 'those of another cluster, for example one of kubeadm',
    },
  ],
  run: async ({ options: values }, io) => {
    const { listTokens } = await import('../../discovery/index.ts')
    const tokens = await listTokens(await openClusterSource(values, io), io.drain)
    const now = systemClock.now()
    if (values.output === 'json')
      io.stdout(`${JSON.stringify({ tokens: tokens.map((each) => tokenJson(each, now)) })}\n`)
    else if (tokens.length === 0) io.stdout('No tokens; make one with `sallyport token create`.\n')
    else
      io.stdout(
        textTable(
          tokenHeadings,
          tokens.map((each) => tokenRow(each, now)),
        ),
      )
  },
})
