import { type OptionTable, systemClock, visibleLine, WrongUsage } from '../../core/index.ts'
import { type Diagnosis, relyingPartyNames } from '../../issuer/doctor/index.ts'
import { certificateAuthorityOption, readCaFile } from '../ca-file.ts'
import { outputOption } from '../cluster-source.ts'
import { defineCommand, FailedWithResult } from '../command.ts'
import { textTable } from '../text-table.ts'

const options = {
  for: {
    type: 'choice',
    choices: relyingPartyNames,
    repeatable: true,
    describe: 'relying party to check for',
    group: 'Issuer',
    placeholder: 'NAME',
    defaultText: `all: ${relyingPartyNames.join(', ')}`,
  },
  ...certificateAuthorityOption,
  ...outputOption,
} as const satisfies OptionTable

/** Every finding once, with all the places where it counts. */
function onceEach(diagnoses: readonly Diagnosis[]) {
  const found = new Map<string, Diagnosis['findings'][number] & { readonly at: string[] }>()
  for (const { relyingParty, findings } of diagnoses) {
    for (const finding of findings) {
      const key = JSON.stringify(finding)
      const known = found.get(key) ?? { ...finding, at: [] }
      known.at.push(relyingParty)
      found.set(key, known)
    }
  }
  return [...found.values()]
}

function shown(diagnoses: readonly Diagnosis[]): string {
  const summary = textTable(
    ['RELYING PARTY', 'VERDICT'],
    diagnoses.map(({ relyingParty, verdict }) => [relyingParty, verdict]),
  )
  const told = onceEach(diagnoses).map(({ level, problem, todo, at }) => {
    const where = at.length === diagnoses.length && at.length > 1 ? 'all' : at.join(', ')
    return `${level} at ${where}: ${visibleLine(problem)}\n  -> ${todo}\n`
  })
  return [summary, ...told].join('\n')
}

/** `sallyport doctor issuer`. */
export const doctorIssuerCommand = defineCommand({
  command: 'sallyport doctor issuer',
  summary: 'Check what an issuer publishes against what each relying party demands',
  arguments: [{ name: 'URL', describe: 'the issuer, exactly as tokens name it', required: true }],
  options,
  examples: [
    {
      line: 'sallyport doctor issuer https://issuer.example --for aws --for vault',
      does: 'what would fail at these two, and what to do about it',
    },
    { line: 'sallyport doctor issuer https://issuer.example', does: 'all that are known' },
  ],
  run: async ({ options: values, args: [issuer = ''] }, io) => {
    if (!URL.canParse(issuer) || !/^https?:/.test(issuer))
      throw new WrongUsage('URL must be the issuer, as in https://issuer.example')
    const { diagnoseIssuer, inspectIssuer } = await import('../../issuer/doctor/index.ts')
    const caPem = await readCaFile(values.certificateAuthority)
    const sight = await inspectIssuer(issuer, { caPem, clock: systemClock })
    const wanted = relyingPartyNames.filter(
      (name) => values.for.length === 0 || values.for.includes(name),
    )
    const diagnoses = diagnoseIssuer(sight, wanted)
    const failing = diagnoses.filter(({ verdict }) => verdict === 'fails')
    const result = { issuer, relyingParties: diagnoses }
    if (values.output === 'text') io.stdout(shown(diagnoses))
    else if (failing.length === 0) io.stdout(`${JSON.stringify(result)}\n`)
    if (failing.length === 0) return
    const names = failing.map(({ relyingParty }) => relyingParty).join(', ')
    throw new FailedWithResult(
      {
        code: 'ISSUER_UNFIT',
        message: `${issuer} does not work at ${names}`,
        hint: 'the report says what to do about each finding',
      },
      result,
    )
  },
})
