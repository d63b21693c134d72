import { kubeTime, systemClock } from '../../core/index.ts'
import type { KeyReport } from '../../issuer/index.ts'
import { dataDirectory, dataDirectoryOption, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { textTable } from '../text-table.ts'

const dayMs = 24 * 3_600_000

function age(sinceMs: number, now: number): string {
  const hours = Math.max(0, Math.floor((now - sinceMs) / 3_600_000))
  return hours < 48 ? `${hours}h` : `${Math.floor((now - sinceMs) / dayMs)}d`
}

/** Keys as JSON has them: times as Kubernetes writes them. */
export const keysAsJson = (keys: readonly KeyReport[]) =>
  keys.map(({ kid, alg, stage, ...times }) => ({
    kid,
    alg,
    stage,
    published: kubeTime(times.publishedAt),
    signsFrom: kubeTime(times.signsFrom),
    lastTokenUntil: kubeTime(times.tokensUntil),
    ...(times.retiredAt !== undefined && { retired: kubeTime(times.retiredAt) }),
    ...(times.droppedAt !== undefined && { droppedAt: kubeTime(times.droppedAt) }),
  }))

/** `sallyport issuer keys`. */
export const issuerKeysCommand = defineCommand({
  command: 'sallyport issuer keys',
  summary: 'Show the keys that sign tokens of service accounts: stage, age and last token of each',
  options: { ...dataDirectoryOption, ...outputOption },
  examples: [
    {
      line: 'sallyport issuer keys',
      does: 'which key signs, which is next, which is kept and why',
    },
  ],
  run: async ({ options: { dataDir, output } }, io) => {
    const { requestKeys } = await import('./key-request.ts')
    const { signingKeysPath: path } = await import('../../issuer/index.ts')
    const keys = await requestKeys(dataDirectory(dataDir, io), { method: 'GET', path }, io.drain)
    if (output === 'json') {
      io.stdout(`${JSON.stringify({ keys: keysAsJson(keys) })}\n`)
      return
    }
    const now = systemClock.now()
    io.stdout(
      textTable(
        ['KEY ID', 'ALGORITHM', 'STAGE', 'AGE', 'SIGNS FROM', 'LAST TOKEN UNTIL', 'DROPPED'],
        keys.map(({ kid, alg, stage, publishedAt, signsFrom, tokensUntil, droppedAt }) => [
          kid,
          alg,
          stage,
          age(publishedAt, now),
          kubeTime(signsFrom),
          tokensUntil > signsFrom ? kubeTime(tokensUntil) : '-',
          droppedAt === undefined ? '-' : kubeTime(droppedAt),
        ]),
      ),
    )
  },
})
