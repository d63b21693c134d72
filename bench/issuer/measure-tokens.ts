import { execFileSync, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Figure, figureOf } from '../credentials/figures.ts'
import type { Order } from '../credentials/report.ts'
import { inTurn } from '../in-turn.ts'
import { inRoot } from '../root.ts'
import { algorithms, newOrder, type TokenOrder } from './token-order.ts'

/** What each process reports. */
interface Speed {
  readonly perSecond: number
  readonly perCpuSecond: number
}

async function resultOf(command: readonly string[], order: TokenOrder): Promise<Speed> {
  const [program = '', ...args] = command
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(JSON.stringify(order))
  const said = await text(child.stdout)
  if (said === '') throw new Error(`${command.join(' ')} said nothing`)
  return JSON.parse(said) as Speed
}

/** The programs that are here; says which are not. */
function contestants(nodeFlags: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const ours = fileURLToPath(new URL('sign-and-verify.js', import.meta.url))
  const found = new Map<string, readonly string[]>([
    ['ours', [process.execPath, ...nodeFlags, ours]],
  ])
  for (const [name, program] of [
    ['jose', 'jose-measure'],
    ['go-oidc, go-jose', 'go-oidc-measure'],
  ] as const) {
    try {
      const path = execFileSync(inRoot('interop/verifiers/path'), [program], { encoding: 'utf8' })
      found.set(name, [path.trim()])
    } catch {
      console.error(`${name} is not measured: run interop/verifiers/build ${program}`)
    }
  }
  return found
}

/** Signing and verifying of tokens, without any server around it. */
export async function measureTokens({ rounds, seconds, nodeFlags }: Order): Promise<Figure[]> {
  const programs = contestants(nodeFlags)
  const figures: Figure[] = []
  for (const alg of algorithms) {
    for (const op of ['sign', 'verify'] as const) {
      const order = newOrder(alg, { op, seconds })
      const measured = new Map(
        [...programs].map(([name, command]) => [name, () => resultOf(command, order)]),
      )
      const results = await inTurn(measured, rounds)
      const values = [...results].map(([name, all]) => [name, all.map((each) => each.perCpuSecond)])
      const aims = [...programs.keys()].slice(1).map((than) => ({ of: 'ours', than, times: 1 }))
      figures.push(
        figureOf({
          name: `${op} ${alg}`,
          unit: 'per CPU second',
          better: 'more',
          aims,
          rounds: Object.fromEntries(values),
        }),
      )
    }
  }
  return figures
}
