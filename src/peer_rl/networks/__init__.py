"""Networks. Every critic returns a CriticOutput, so that phi is never hidden."""
