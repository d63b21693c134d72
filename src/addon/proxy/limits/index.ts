export { type Admission, Budgets, type Claim, type SessionKind } from './budgets.ts'
export { limitsOfService, type ProxyLimits } from './proxy-limits.ts'
