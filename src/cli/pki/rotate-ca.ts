import type { X509Certificate } from 'node:crypto'
import type { DataDirectory } from '../../apiserver/data-directory/index.ts'
import type { OldCertificate } from '../../apiserver/users/index.ts'
import {
  CommandFailed,
  kubeTime,
  type OptionTable,
  systemClock,
  WrongUsage,
} from '../../core/index.ts'
import type { CaRotation, CaRotationAction } from '../../pki/index.ts'
import { dataDirectory, dataDirectoryOption, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { textTable } from '../text-table.ts'

const actions = ['begin', 'switch', 'finish', 'cancel'] as const
const isAction = (word: string): word is CaRotationAction =>
  actions.some((action) => action === word)

const options = {
  yes: {
    type: 'boolean',
    default: false,
    describe: 'drop the old CA with `finish`, whoever still needs it',
    group: 'Rotation',
  },
  ...dataDirectoryOption,
  ...outputOption,
} as const satisfies OptionTable

/** What is known of a rotation. */
interface Report {
  readonly rotation: CaRotation
  /** Undefined if no server runs. */
  readonly atRisk: readonly OldCertificate[] | undefined
  readonly followed: boolean
}

async function reportAsJson({ rotation, atRisk, followed }: Report): Promise<string> {
  const { spkiPin } = await import('../../pki/index.ts')
  const show = (ca: X509Certificate | undefined) =>
    ca && {
      pin: spkiPin(ca),
      subject: ca.subject.replaceAll('\n', ', '),
      validTo: kubeTime(Date.parse(ca.validTo)),
    }
  const { stage, signing, next, old, trusted } = rotation
  return `${JSON.stringify({
    stage,
    signing: show(signing),
    next: show(next),
    old: show(old),
    trusted: trusted.map(show),
    followed,
    certificatesOfOldCa: atRisk,
  })}\n`
}

const nextSteps: Readonly<Record<CaRotation['stage'], string>> = {
  none: 'No replacement of the CA is under way. `sallyport pki rotate-ca begin` starts one.',
  begun:
    'Both CAs are trusted, and the old one signs. Join lines need both pins from now on (`sallyport token create` prints them).\nGo on with `sallyport pki rotate-ca switch`, or take it back with `cancel`.',
  switched:
    'The new CA signs, and both are trusted. Give clients time to refresh (`sallyport cluster-info refresh`; those of Sallyport do so every 10 minutes)\nand replace the client certificates of the old CA. Then drop it with `sallyport pki rotate-ca finish`.',
}

async function reportAsText({ rotation, atRisk, followed }: Report): Promise<string> {
  const { spkiPin } = await import('../../pki/index.ts')
  const roleOf = (ca: X509Certificate): string => {
    const same = (other: X509Certificate | undefined): boolean =>
      other?.fingerprint256 === ca.fingerprint256
    if (same(rotation.signing)) return 'signs'
    if (same(rotation.next)) return 'next'
    return same(rotation.old) ? 'old' : 'trusted'
  }
  const table = textTable(
    ['ROLE', 'PIN', 'SUBJECT', 'VALID TO'],
    rotation.trusted.map((ca) => [
      roleOf(ca),
      spkiPin(ca),
      ca.subject.replaceAll('\n', ', '),
      kubeTime(Date.parse(ca.validTo)),
    ]),
  )
  const server = followed ? '' : '\nNo server runs here; the next one that starts takes it over.\n'
  return `${table}\n${nextSteps[rotation.stage]}\n${risk(atRisk, rotation)}${server}`
}

function risk(atRisk: Report['atRisk'], { stage }: CaRotation): string {
  if (stage !== 'switched') return ''
  if (!atRisk)
    return '\nWhich certificates of the old CA are in use is not known: no server runs.\n'
  if (atRisk.length === 0) return '\nNo client certificate of the old CA is known to be in use.\n'
  return `\nClient certificates of the old CA:\n${riskTable(atRisk)}`
}

const riskTable = (atRisk: readonly OldCertificate[]): string =>
  textTable(
    ['USER', 'SERIAL', 'LAST SEEN', 'EXPIRES'],
    atRisk.map(({ user, serial, lastSeen, expires }) => [user, serial, lastSeen ?? '-', expires]),
  )

/** What `finish` breaks, for whoever has to decide. */
async function requireConsent(directory: DataDirectory, io: Io): Promise<void> {
  const { atRisk, rotation } = await look(directory, io)
  const damage = [
    'clients that have not refreshed since `begin` can no longer verify the server: they must run discovery again',
    'join lines with the pin of the old CA alone are refused',
    ...(rotation.stage === 'switched' && atRisk && atRisk.length > 0
      ? [
          `these client certificates stop working:\n${riskTable(atRisk).replaceAll(/^/gm, '    ').trimEnd()}`,
        ]
      : []),
    ...(atRisk ? [] : ['which client certificates stop working is not known: no server runs']),
  ]
  throw new CommandFailed(
    'NOT_CONFIRMED',
    `dropping the old CA breaks things:\n${damage.map((each) => `  - ${each}`).join('\n')}`,
    { hint: 'run it again with --yes' },
  )
}

async function look(directory: DataDirectory, io: Io): Promise<Report> {
  const { readCaRotation } = await import('../../pki/index.ts')
  const { certificatesAtRisk, runningCluster } = await import('./follow-rotation.ts')
  const rotation = await readCaRotation(directory.pki)
  const access = await runningCluster(directory, io.drain)
  const atRisk = access && (await certificatesAtRisk(access, rotation, io.drain))
  return { rotation, atRisk, followed: access !== undefined }
}

async function act(action: CaRotationAction, directory: DataDirectory, io: Io): Promise<Report> {
  const { readCaRotation, rotateCa } = await import('../../pki/index.ts')
  const { acquireDirectoryLock } = await import('../../storage/index.ts')
  const { serverProcess } = await import('../server-process.ts')
  const { untilFollowed } = await import('./follow-rotation.ts')
  const before = await readCaRotation(directory.pki)
  const lock = await acquireDirectoryLock(directory.pki, serverProcess()).catch(busy)
  try {
    const order = { directory: directory.pki, now: systemClock.now() }
    const after = await rotateCa(action, order)
    const dropped = { begin: undefined, switch: undefined, finish: before.old, cancel: before.next }
    const change = { after, dropped: dropped[action] }
    const followed = await untilFollowed(directory, change, io.drain)
    return { ...(await look(directory, io)), followed }
  } finally {
    await lock.release()
  }
}

function busy(cause: unknown): never {
  if (!(cause instanceof CommandFailed) || cause.code !== 'DATA_DIR_IN_USE') throw cause
  throw new CommandFailed('CA_ROTATION_BUSY', 'another `sallyport pki rotate-ca` is at work', {
    hint: 'wait for it, then see `sallyport pki rotate-ca status`',
    cause,
  })
}

/** `sallyport pki rotate-ca`. */
export const pkiRotateCaCommand = defineCommand({
  command: 'sallyport pki rotate-ca',
  summary: "Replace the cluster's CA in stages, without a restart and without a break",
  arguments: [
    { name: 'STAGE', describe: 'status, begin, switch, finish or cancel', required: true },
  ],
  options,
  examples: [
    {
      line: 'sallyport pki rotate-ca status',
      does: 'which CAs there are, and who still needs the old one',
    },
    {
      line: 'sallyport pki rotate-ca begin',
      does: 'makes a new CA; both are trusted and announced',
    },
    {
      line: 'sallyport pki rotate-ca switch',
      does: 'lets the new CA sign; the old one is still trusted',
    },
    { line: 'sallyport pki rotate-ca finish --yes', does: 'drops the old CA' },
  ],
  run: async ({ options: { dataDir, output, yes }, args: [stage = ''] }, io) => {
    if (stage !== 'status' && !isAction(stage))
      throw new WrongUsage(
        `the stage must be status, ${actions.join(', ')}: not ${JSON.stringify(stage)}`,
      )
    const directory = dataDirectory(dataDir, io)
    const rotation = await import('../../pki/index.ts').then(({ readCaRotation }) =>
      readCaRotation(directory.pki),
    )
    if (stage === 'finish' && !yes && rotation.stage === 'switched')
      await requireConsent(directory, io)
    const report = stage === 'status' ? await look(directory, io) : await act(stage, directory, io)
    io.stdout(await (output === 'json' ? reportAsJson(report) : reportAsText(report)))
  },
})
