import type { BootstrapToken, StoredToken, TokenUsage } from '../../bootstrap/index.ts'
import {
  kubeTime,
  type OptionTable,
  type OptionValues,
  type Secret,
  systemClock,
  WrongUsage,
} from '../../core/index.ts'
import { clusterSourceOptions, openClusterSource, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { readTokenInput } from '../issuer/token-input.ts'
import { type InvitationLines, invitationOf, lifeLeft, tokenJson } from './report.ts'

const token = 'Token'

const options = {
  ttl: {
    type: 'duration',
    min: 0,
    max: 100 * 365 * 24 * 3_600_000,
    default: 24 * 3_600_000,
    describe: 'how long it is good; 0 is forever',
    group: token,
  },
  usages: {
    type: 'choice',
    choices: ['signing', 'authentication'],
    repeatable: true,
    default: ['signing', 'authentication'],
    describe: 'what it is for: to prove the cluster to those who join, and them to the cluster',
    group: token,
  },
  groups: {
    type: 'string',
    repeatable: true,
    default: ['system:bootstrappers:kubeadm:default-node-token'],
    describe:
      'groups of whoever shows it, as system:bootstrappers:NAME; the default may join nodes',
    group: token,
    placeholder: 'GROUP',
  },
  description: {
    type: 'string',
    describe: 'for people who read the list',
    group: token,
    placeholder: 'TEXT',
  },
  'max-uses': {
    type: 'integer',
    min: 1,
    max: 999_999_999,
    describe: 'for how many node certificates it is good',
    group: token,
    placeholder: 'NUMBER',
    defaultText: 'any number',
  },
  'node-name': {
    type: 'string',
    describe: 'the only node that may join with it',
    group: token,
    placeholder: 'NAME',
    defaultText: 'any',
  },
  replace: {
    type: 'string',
    describe:
      'replace the machine of this node: it joins under the old name, once, and the previous certificates are revoked',
    group: token,
    placeholder: 'NODE',
  },
  'secret-length': {
    type: 'integer',
    min: 16,
    max: 64,
    default: 16,
    describe: 'letters of a new secret; kubeadm and kubelets read 16 only',
    group: token,
    placeholder: 'NUMBER',
  },
  token: {
    type: 'string',
    secret: true,
    describe: 'the token itself, id.secret, if somebody has chosen one; rather by file',
    group: token,
    placeholder: 'TOKEN',
    defaultText: 'a new one',
  },
  'token-file': {
    type: 'path',
    describe: 'file with the token; - is the standard input',
    group: token,
    placeholder: 'FILE',
  },
  'print-join-command': {
    type: 'choice',
    choices: ['sallyport', 'kubeadm'],
    describe: 'print the line for this program and nothing else',
    group: 'Output',
  },
  ...clusterSourceOptions,
  ...outputOption,
} as const satisfies OptionTable

type Values = OptionValues<typeof options>

/** `sallyport token create`. */
export const tokenCreateCommand = defineCommand({
  command: 'sallyport token create',
  summary: 'Make a bootstrap token and print the line by which a machine joins with it',
  options,
  examples: [
    { line: 'sallyport token create', does: 'good for any number of nodes, for a day' },
    {
      line: 'sallyport token create --ttl 1h --max-uses 1 --node-name worker-1',
      does: 'good for one node of this name, for an hour',
    },
    {
      line: 'sallyport token create --replace worker-1 --ttl 1h',
      does: 'for a rebuilt machine that comes back as worker-1',
    },
    {
      line: 'sallyport token create --print-join-command kubeadm',
      does: 'the line for kubeadm, as kubeadm prints it',
    },
    {
      line: 'sallyport token create --token-file - < token',
      does: 'a token that was agreed on before',
    },
  ],
  run: async ({ options: values }, io) => {
    const { createToken } = await import('../../bootstrap/index.ts')
    const stored = await orderedToken(values, io)
    const view = await openClusterSource(values, io)
    const lines = await invitationOf(view, stored, io.drain)
    requireLine(lines, values)
    await createToken(view, stored, io.drain)
    tell(stored, lines, values, io)
  },
})

async function orderedToken(values: Values, io: Io): Promise<StoredToken> {
  const { readTokenSecret, tokenSecret } = await import('../../bootstrap/index.ts')
  const { description, replace, ttl } = values
  const { maxUses, nodeName } = replace === undefined ? values : replacing(replace, values)
  const stored: StoredToken = {
    token: await chosenOrNew(values, io),
    usages: new Set<TokenUsage>(values.usages),
    extraGroups: values.groups,
    ...(ttl > 0 && { expiresAt: systemClock.now() + ttl }),
    ...(description !== undefined && { description }),
    ...(maxUses !== undefined && { maxUses }),
    ...(nodeName !== undefined && { boundNodeName: nodeName }),
    ...(replace !== undefined && { replaceNodeName: replace }),
  }
  const [problem] = readTokenSecret(tokenSecret(stored)).problems
  if (problem)
    throw new WrongUsage(`${problem.field.replace(/^data\[(.*)\]$/, '$1')} ${problem.message}`)
  return stored
}

/** A token that replaces a machine is for its node only, and for one use. */
function replacing(node: string, { nodeName = node, maxUses = 1 }: Values) {
  if (nodeName !== node) throw new WrongUsage('--replace and --node-name must name the same node')
  if (maxUses !== 1) throw new WrongUsage('--replace is for one machine; leave out --max-uses')
  return { nodeName, maxUses }
}

/** The token that somebody has chosen, with a warning if it is easy to guess, or a new one. */
async function chosenOrNew(values: Values, io: Io): Promise<BootstrapToken> {
  const { generateBootstrapToken, parseBootstrapToken, weaknessOf } = await import(
    '../../bootstrap/index.ts'
  )
  const text = await chosenText(values.token, values.tokenFile)
  if (text === undefined) return generateBootstrapToken(values.secretLength)
  const chosen = parseBootstrapToken(text)
  const weakness = weaknessOf(chosen)
  if (weakness !== undefined)
    io.stderr(`warning: the token is easier to guess than a generated one: ${weakness}\n`)
  return chosen
}

async function chosenText(
  given: Secret | undefined,
  file: string | undefined,
): Promise<string | undefined> {
  if (given !== undefined && file !== undefined)
    throw new WrongUsage('--token and --token-file exclude each other')
  if (file !== undefined)
    return readTokenInput(
      file === '-' ? { argument: '-', file: undefined } : { argument: undefined, file },
    )
  return given?.reveal()
}

function requireLine(lines: InvitationLines | undefined, { printJoinCommand }: Values): void {
  if (printJoinCommand === undefined || lines?.[printJoinCommand] !== undefined) return
  throw new WrongUsage(
    printJoinCommand === 'kubeadm'
      ? 'kubeadm cannot join with such a token: it needs both usages, a secret of 16 letters and a CA to pin'
      : 'nobody can join with such a token: it needs both usages',
  )
}

function tell(
  stored: StoredToken,
  lines: InvitationLines | undefined,
  { printJoinCommand, output }: Values,
  io: Io,
): void {
  if (printJoinCommand !== undefined) io.stdout(`${lines?.[printJoinCommand]}\n`)
  else io.stdout(output === 'json' ? jsonOf(stored, lines) : textOf(stored, lines))
}

function jsonOf(stored: StoredToken, lines: InvitationLines | undefined): string {
  const { id, secret } = stored.token
  const entry = { id, stored, problems: [] }
  return `${JSON.stringify({
    ...tokenJson(entry, systemClock.now()),
    token: `${id}.${secret.reveal()}`,
    ...(lines && { join: lines.sallyport }),
    ...(lines?.kubeadm !== undefined && { kubeadmJoin: lines.kubeadm }),
  })}\n`
}

function textOf(stored: StoredToken, lines: InvitationLines | undefined): string {
  const { id, secret } = stored.token
  const { expiresAt, maxUses, boundNodeName, replaceNodeName } = stored
  const end =
    expiresAt === undefined
      ? 'it never expires'
      : `it expires in ${lifeLeft(stored, systemClock.now())}, at ${kubeTime(expiresAt)}`
  const limits = [
    ...(maxUses === undefined
      ? []
      : [`good for ${maxUses === 1 ? 'one node' : `${maxUses} nodes`}`]),
    ...(boundNodeName === undefined ? [] : [`only for the node ${boundNodeName}`]),
    ...(replaceNodeName === undefined
      ? []
      : ['the certificates of the previous machine are revoked when it is used']),
  ]
  return [
    `token ${id}.${secret.reveal()}: ${[end, ...limits].join(', ')}`,
    ...(lines ? ['', 'A machine joins with it by', `  ${lines.sallyport}`] : []),
    ...(lines?.kubeadm === undefined ? [] : ['or by', `  ${lines.kubeadm}`]),
    '',
  ].join('\n')
}
