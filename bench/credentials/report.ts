import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { load, lookAround } from '../api/surroundings.ts'
import { inRoot } from '../root.ts'
import { type Figure, renderFigures } from './figures.ts'

/** How long and how often is measured, and where the result goes. */
export interface Order {
  readonly rounds: number
  readonly seconds: number
  readonly output: string
  /** Flags for Node where ours runs: with `--profile DIR` a CPU profile of each process is written there. */
  readonly nodeFlags: readonly string[]
}

const options = {
  short: { type: 'boolean', default: false },
  output: { type: 'string' },
  profile: { type: 'string' },
} as const

/** The flags, or the end of the process with a sentence about them. */
function readFlags(name: string): ReturnType<typeof parseArgs<{ options: typeof options }>> {
  try {
    return parseArgs({ options })
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    console.error(`usage: npm run bench -- ${name} [--short] [--output FILE] [--profile DIR]`)
    process.exit(2)
  }
}

/** Reads `--short`, `--output` and `--profile`; a whole run goes to a file that is kept. */
export function readOrder(name: string): Order {
  const { values } = readFlags(name)
  const kept = inRoot('bench/results', `${name}${values.short ? '-part.local' : ''}.json`)
  const output = values.output === undefined ? kept : resolve(values.output)
  const nodeFlags =
    values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(values.profile)}`]
  const [rounds, seconds] = values.short ? [1, 1] : [3, 3]
  return { rounds, seconds, output, nodeFlags }
}

/** Prints the figures and writes them down. */
export async function report(figures: readonly Figure[], { output }: Order): Promise<void> {
  console.log(renderFigures(figures))
  await mkdir(dirname(output), { recursive: true })
  const about = { ...lookAround(), at: new Date().toISOString(), load: load() }
  await writeFile(output, `${JSON.stringify({ ...about, figures }, null, 2)}\n`)
}
