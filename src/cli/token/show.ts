import type { TokenEntry } from '../../bootstrap/index.ts'
import { kubeTime, systemClock, visibleLine } from '../../core/index.ts'
import { clusterSourceOptions, openClusterSource, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { textTable } from '../text-table.ts'
import {
  type InvitationLines,
  invitationOf,
  lifeLeft,
  tokenHeadings,
  tokenJson,
  tokenRow,
} from './report.ts'

/** `sallyport token show`. */
export const tokenShowCommand = defineCommand({
  command: 'sallyport token show',
  summary: 'Show one bootstrap token; its secret and the join line only if asked for',
  arguments: [{ name: 'ID', describe: 'the six letters before the dot', required: true }],
  options: {
    'show-secret': {
      type: 'boolean',
      default: false,
      describe: 'also the secret, and the line that joins with it',
      group: 'Output',
    },
    ...clusterSourceOptions,
    ...outputOption,
  },
  examples: [
    { line: 'sallyport token show abcdef', does: 'life, usages and uses left' },
    {
      line: 'sallyport token show abcdef --show-secret',
      does: 'the whole token and the join line as well',
    },
  ],
  run: async ({ options: values, args: [given = ''] }, io) => {
    const { getToken, tokenText } = await import('../../bootstrap/index.ts')
    const view = await openClusterSource(values, io)
    const entry = await getToken(view, given.split('.', 1)[0] ?? '', io.drain)
    const { stored } = entry
    const isShown = values.showSecret && stored !== undefined
    const secret = isShown ? tokenText(stored.token).reveal() : undefined
    const lines = isShown ? await invitationOf(view, stored, io.drain) : undefined
    const now = systemClock.now()
    io.stdout(
      values.output === 'json'
        ? `${JSON.stringify({ ...tokenJson(entry, now), ...(secret && { token: secret }), ...(lines && { join: lines.sallyport }) })}\n`
        : describeToken(entry, { now, secret, lines }),
    )
  },
})

function describeToken(
  entry: TokenEntry,
  shown: {
    readonly now: number
    readonly secret: string | undefined
    readonly lines: InvitationLines | undefined
  },
): string {
  const { stored } = entry
  const cells = tokenRow(entry, shown.now)
  const rows: [string, string][] = tokenHeadings.map((heading, index) => [
    heading.toLowerCase(),
    cells[index] ?? '',
  ])
  rows.splice(1, 0, ['token', shown.secret ?? `${entry.id}.<secret>`])
  if (stored?.expiresAt !== undefined)
    rows[2] = ['life left', `${lifeLeft(stored, shown.now)}, until ${kubeTime(stored.expiresAt)}`]
  if (shown.lines) rows.push(['join', shown.lines.sallyport])
  return `${rows.map(([name, value]) => `${name.padEnd(12)} ${visibleLine(value)}`.trimEnd()).join('\n')}\n`
}

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
    const { listTokens } = await import('../../bootstrap/index.ts')
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
    const { deleteToken } = await import('../../bootstrap/index.ts')
    const id = given.split('.', 1)[0] ?? ''
    await deleteToken(await openClusterSource(values, io), id, io.drain)
    io.stdout(values.output === 'json' ? `${JSON.stringify({ id })}\n` : `token ${id} is deleted\n`)
  },
})
