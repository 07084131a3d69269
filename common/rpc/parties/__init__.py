"""Who is who: identities, revocation and signatures."""
