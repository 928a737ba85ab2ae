import { ThemeSelect } from '../../ui/theme.tsx'

/** The own account, and how the console looks. */
export function AccountPage() {
  return (
    <div class="page">
      <header>
        <h1>Account</h1>
      </header>
      <ThemeSelect />
    </div>
  )
}
