import type { DataDirectory } from '../../apiserver/data-directory/index.ts'
import { CommandFailed, kubeTime, type OptionTable, WrongUsage } from '../../core/index.ts'
import type { KeyReport } from '../../issuer/index.ts'
import { dataDirectory, dataDirectoryOption, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { keysAsJson } from './keys.ts'

/** Less would be no help: caches that heed our headers need it. */
const shortestShowMs = 90 * 60_000

const options = {
  'show-for': {
    type: 'duration',
    min: shortestShowMs,
    max: 90 * 24 * 3_600_000,
    default: shortestShowMs,
    describe:
      'how long the next key is shown before it signs; longer where key sets are uploaded or copied by hand',
    group: 'Rotation',
  },
  now: {
    type: 'boolean',
    default: false,
    describe: 'drop every key at once, because one was stolen; this ends all tokens',
    group: 'Rotation',
  },
  'addon-tokens': {
    type: 'boolean',
    default: false,
    describe: 'replace the key of add-on tokens instead (server with --addon-token-key dedicated)',
    group: 'Rotation',
  },
  yes: {
    type: 'boolean',
    default: false,
    describe: 'go through with --now',
    group: 'Rotation',
  },
  ...dataDirectoryOption,
  ...outputOption,
} as const satisfies OptionTable

/** What --now breaks, for whoever has to decide. */
const damage = [
  'every token of every service account dies: Pods are refused until they have fetched new ones',
  'relying parties refuse new tokens until they fetch the key set again: an hour by our headers, longer for some',
  'relying parties go on to accept the dropped key as long as they remember it: restart those that matter',
  'copies of the documents elsewhere must be published again (`sallyport issuer publish`)',
]

function plan(keys: readonly KeyReport[]): string {
  const next = keys.find(({ stage }) => stage === 'next')
  const signing = keys.find(({ stage }) => stage === 'signing')
  if (!next || !signing) return ''
  return [
    `now                    key ${next.kid} is published`,
    `${kubeTime(next.signsFrom)}   it begins to sign: every cache that heeds our headers has it by then`,
    `after that             key ${signing.kid} signs no more, and is published until its last token has died`,
    '',
    'Nothing else is to be done here. Publish copies of the documents again before the first of these times.',
    '',
  ].join('\n')
}

/** These tokens live for a minute: their key needs no stages. */
async function rotateAddonKey(directory: DataDirectory, output: string, io: Io): Promise<void> {
  const { openClusterAccess } = await import('../cluster-access.ts')
  const { addonKeyRotationPath: path } = await import('../../addon/token/index.ts')
  const { client } = await openClusterAccess(directory)
  const { body } = await client.request({ method: 'POST', path, body: {} }, io.drain)
  const { keyId } = JSON.parse(body.toString()) as { keyId: string }
  io.stdout(
    output === 'json' ? `${JSON.stringify({ keyId })}\n` : `key ${keyId} signs add-on tokens now\n`,
  )
}

/** `sallyport issuer rotate`. */
export const issuerRotateCommand = defineCommand({
  command: 'sallyport issuer rotate',
  summary: 'Replace the key that signs tokens, step by step and without a failure; or at once',
  options,
  examples: [
    { line: 'sallyport issuer rotate', does: 'publishes the next key and says when it takes over' },
    {
      line: 'sallyport issuer rotate --show-for 168h',
      does: 'a week to upload the key set to relying parties that do not fetch it',
    },
    {
      line: 'sallyport issuer rotate --now --yes',
      does: 'after a theft: only a new key counts from this moment on',
    },
  ],
  run: async ({ options: { now, yes, showFor, addonTokens, dataDir, output } }, io) => {
    if (addonTokens) {
      if (now || showFor > shortestShowMs)
        throw new WrongUsage('--addon-tokens goes with neither --now nor --show-for')
      await rotateAddonKey(dataDirectory(dataDir, io), output, io)
      return
    }
    if (now && showFor > shortestShowMs)
      throw new WrongUsage('--now shows no key before it signs: leave out --show-for')
    if (now && !yes)
      throw new CommandFailed(
        'NOT_CONFIRMED',
        `--now breaks things:\n${damage.map((each) => `  - ${each}`).join('\n')}`,
        { hint: 'run it again with --yes, or leave --now out for a rotation that breaks nothing' },
      )
    const { requestKeys } = await import('./key-request.ts')
    const { keyRotationPath: path } = await import('../../issuer/index.ts')
    const body = now ? { now } : { showMs: showFor }
    const request = { method: 'POST', path, body } as const
    const keys = await requestKeys(dataDirectory(dataDir, io), request, io.drain)
    if (output === 'json') io.stdout(`${JSON.stringify({ keys: keysAsJson(keys) })}\n`)
    else if (now)
      io.stdout(`only key ${keys[0]?.kid} counts from now on; every earlier token is dead\n`)
    else io.stdout(plan(keys))
  },
})
