import { kubeTime, systemClock, visibleLine } from '../../core/index.ts'
import type { TokenEntry } from '../../discovery/index.ts'
import { clusterSourceOptions, openClusterSource } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { outputOption } from '../shared-options.ts'
import { type InvitationLines, invitationOf } from '../token-invitation.ts'
import { lifeLeft, tokenHeadings, tokenJson, tokenRow } from '../token-report.ts'

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
    const { getToken, tokenText } = await import('../../discovery/index.ts')
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
