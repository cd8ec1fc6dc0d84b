"""The command ``peer-rl``: one file per subcommand, each imported only when it is called."""
